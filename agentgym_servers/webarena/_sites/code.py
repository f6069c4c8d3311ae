"""The repository host: projects with issues, merge requests, commits, members and files."""

from __future__ import annotations

import re

from agentgym_servers.webarena._sites.code_data import LABELS, ROLES, Code, Issue, MergeRequest, Project
from agentgym_servers.webarena._sites.html import (
    Html,
    button_form,
    choice,
    facts,
    field,
    form,
    items,
    join,
    link,
    table,
    tag,
    text_area,
)
from agentgym_servers.webarena._sites.web import Response, Site, Visit, address, redirect

__all__ = ["CODE"]

CODE = Site(
    "gitlab",
    "Forgehub",
    (
        ("My projects", "/"),
        ("Explore", "/explore"),
        ("New project", "/projects/new"),
        ("Profile", "/-/profile"),
    ),
)

_PROJECT = r"/([a-z]+)/([a-z0-9-]+)"


def _projects(projects: list[Project]) -> Html:
    rows = [
        (
            link(f"{each.space}/{each.name}", each.path),
            f"{each.stars} stars",
            f"{each.forks} forks",
            each.visibility,
        )
        for each in projects
    ]
    return table((), rows, id="projects")


@CODE.get("/", signed_in=True)
def _mine(visit: Visit) -> Response:
    mine = [each for each in visit.state.code.projects if each.space == visit.user]
    find = form("/search", field("Search projects", "q"), submit="Search", method="get")
    return visit.page("My projects", tag("h1", "My projects"), find, _projects(mine))


@CODE.get("/explore")
def _explore(visit: Visit) -> Response:
    projects = [each for each in visit.state.code.projects if each.visibility == "Public"]
    if visit.text("sort") == "stars":
        projects.sort(key=lambda each: -each.stars)
    order = link("Sort by stars", address("/explore", sort="stars"))
    return visit.page("Explore", tag("h1", "Explore projects"), tag("p", order), _projects(projects))


@CODE.get("/search")
def _search(visit: Visit) -> Response:
    query = visit.text("q")
    found = [
        each for each in visit.state.code.projects if query and query.lower() in f"{each.space}/{each.name}"
    ]
    return visit.page(f"Search: {query}", tag("h1", f"Projects with: {query}"), _projects(found))


@CODE.get("/projects/new", signed_in=True)
def _new_page(visit: Visit) -> Response:
    fields = (
        field("Project name", "name"),
        choice("Visibility", "visibility", ("Public", "Private"), "Public"),
    )
    return visit.page(
        "New project", tag("h1", "New project"), form("/projects/new", *fields, submit="Create project")
    )


@CODE.post("/projects/new", signed_in=True)
def _new(visit: Visit) -> Response:
    code, name = visit.state.code, visit.text("name").lower()
    if not re.fullmatch("[a-z0-9-]{2,40}", name) or code.project(visit.user, name) is not None:
        return visit.page("New project", tag("p", "The name is taken, or has other characters."), status=400)
    visibility = "Private" if visit.text("visibility") == "Private" else "Public"
    project = Project(visit.user, name, "", 0, 0, visibility, members={visit.user: "Maintainer"})
    code.projects.append(project)
    return redirect(project.path)


@CODE.get("/-/profile", signed_in=True)
def _profile(visit: Visit) -> Response:
    code = visit.state.code
    about = [("Name", visit.user), ("E-mail", code.users[visit.user]), ("Status", code.status or "none")]
    edit = form("/-/profile", field("New status", "status"), submit="Set status")
    return visit.page("Profile", tag("h1", "Profile"), facts(about, id="profile"), edit)


@CODE.post("/-/profile", signed_in=True)
def _set_status(visit: Visit) -> Response:
    visit.state.code.status = visit.text("status")
    return redirect("/-/profile")


def _found(visit: Visit, space: str, name: str) -> Project | None:
    project = visit.state.code.project(space, name)
    hidden = project is not None and project.visibility == "Private" and visit.user not in project.members
    return None if hidden else project


def _links(project: Project) -> Html:
    names = (
        ("Issues", "/-/issues"),
        ("Merge requests", "/-/merge_requests"),
        ("Commits", "/-/commits"),
        ("Members", "/-/members"),
        ("Contributors", "/-/contributors"),
    )
    return tag(
        "p", link(project.name, project.path), ((" ", link(text, project.path + end)) for text, end in names)
    )


@CODE.get(_PROJECT)
def _project(visit: Visit, space: str, name: str) -> Response:
    project = _found(visit, space, name)
    if project is None:
        return visit.missing()
    path = project.path
    about = [
        ("About", project.about),
        ("Visibility", project.visibility),
        ("Stars", project.stars + project.starred),
        ("Forks", project.forks),
        ("Clone with SSH", f"git@gitlab.test:{space}/{name}.git"),
    ]
    starred = "You have starred this project." if project.starred else "You have not starred this project."
    doing = (
        button_form("Unstar" if project.starred else "Star", f"{path}/-/star"),
        " ",
        button_form("Fork", f"{path}/-/fork"),
    )
    files = items(link(each, f"{path}/-/blob/{each}") for each in project.files)
    return visit.page(
        f"{space}/{name}",
        tag("h1", f"{space}/{name}"),
        _links(project),
        facts(about, id="about"),
        tag("p", starred, id="starred"),
        tag("p", doing),
        tag("h2", "Files"),
        files,
        link("New file", f"{path}/-/new_file") if visit.user in project.members else None,
    )


@CODE.post(_PROJECT + "/-/(star|fork)", signed_in=True)
def _star_or_fork(visit: Visit, space: str, name: str, doing: str) -> Response:
    project, code = _found(visit, space, name), visit.state.code
    if project is None:
        return visit.missing()
    if doing == "star":
        project.starred = not project.starred
    elif code.project(visit.user, name) is None:
        project.forks += 1
        fork = Project(visit.user, name, project.about, 0, 0, members={visit.user: "Maintainer"})
        fork.files = dict(project.files)
        code.projects.append(fork)
        return redirect(fork.path)
    return redirect(project.path)


@CODE.get(_PROJECT + r"/-/blob/([A-Za-z0-9._-]+)")
def _file(visit: Visit, space: str, name: str, file: str) -> Response:
    project = _found(visit, space, name)
    if project is None or file not in project.files:
        return visit.missing()
    return visit.page(file, tag("h1", file), _links(project), tag("pre", project.files[file], id="file"))


@CODE.get(_PROJECT + "/-/new_file", signed_in=True)
def _new_file_page(visit: Visit, space: str, name: str) -> Response:
    write = form(
        f"/{space}/{name}/-/new_file",
        field("File name", "file"),
        text_area("Content", "content"),
        submit="Commit changes",
    )
    return visit.page("New file", tag("h1", "New file"), write)


@CODE.post(_PROJECT + "/-/new_file", signed_in=True)
def _new_file(visit: Visit, space: str, name: str) -> Response:
    project, file = _found(visit, space, name), visit.text("file")
    if project is None or visit.user not in project.members or not re.fullmatch("[A-Za-z0-9._-]{1,60}", file):
        return visit.missing()
    project.files[file] = visit.text("content")
    return redirect(f"{project.path}/-/blob/{file}")


@CODE.get(_PROJECT + "/-/(issues|merge_requests|commits|members|contributors)")
def _lists(visit: Visit, space: str, name: str, what: str) -> Response:
    project = _found(visit, space, name)
    if project is None:
        return visit.missing()
    shown = {
        "issues": _issues,
        "merge_requests": _requests,
        "commits": _commits,
        "members": _members,
        "contributors": _contributors,
    }[what](visit, project)
    title = what.replace("_", " ").capitalize()
    return visit.page(f"{title} of {name}", tag("h1", title), _links(project), shown)


def _issues(visit: Visit, project: Project) -> Html:
    base, state, label = f"{project.path}/-/issues", visit.text("state", "opened"), visit.text("label")
    issues = [each for each in project.issues if state == "all" or each.is_open == (state == "opened")]
    issues = [each for each in issues if not label or label in each.labels]
    states = [(link(f"Show {each}", address(base, state=each)), " ") for each in ("opened", "closed", "all")]
    labels = [(link(f"Label {each}", address(base, label=each)), " ") for each in LABELS]
    rows = [
        (
            f"#{each.number}",
            link(each.title, f"{base}/{each.number}"),
            ", ".join(each.labels),
            f"by {each.author}",
        )
        for each in issues
    ]
    new = link("New issue", f"{base}/new")
    return join(
        tag("p", states), tag("p", labels), new, tag("p", f"{len(rows)} issues"), table((), rows, id="issues")
    )


def _requests(_visit: Visit, project: Project) -> Html:
    base = f"{project.path}/-/merge_requests"
    rows = [
        (
            f"!{each.number}",
            link(each.title, f"{base}/{each.number}"),
            f"by {each.author}",
            "open" if each.is_open else "closed",
        )
        for each in project.requests
    ]
    return table((), rows)


def _commits(_visit: Visit, project: Project) -> Html:
    rows = [(each.date, each.message, each.author, each.sha) for each in project.commits]
    return table(("Date", "Message", "Author", "Commit"), rows)


def _members(visit: Visit, project: Project) -> Html:
    rows = list(project.members.items())
    shown = table(("User", "Role"), rows, id="members")
    if project.members.get(visit.user) != "Maintainer":
        return shown
    fields = (field("Username", "user"), choice("Role", "role", ROLES, "Guest"))
    return join(
        shown, tag("h2", "Invite a member"), form(f"{project.path}/-/members", *fields, submit="Invite")
    )


def _contributors(visit: Visit, project: Project) -> Html:
    users: Code = visit.state.code
    authors = sorted(
        {each.author for each in project.commits}, key=lambda each: (-project.commits_of(each), each)
    )
    rows = [(each, users.users[each], f"{project.commits_of(each)} commits") for each in authors]
    return table(("User", "E-mail", "Commits"), rows)


@CODE.post(_PROJECT + "/-/members", signed_in=True)
def _invite(visit: Visit, space: str, name: str) -> Response:
    project, user, role = _found(visit, space, name), visit.text("user").lstrip("@"), visit.text("role")
    if project is None or project.members.get(visit.user) != "Maintainer":
        return visit.missing()
    if user in visit.state.code.users and role in ROLES:
        project.members[user] = role
    return redirect(f"{project.path}/-/members")


@CODE.get(_PROJECT + "/-/issues/new", signed_in=True)
def _new_issue_page(visit: Visit, space: str, name: str) -> Response:
    fields = (field("Title", "title"), text_area("Description", "text"), field("Assignee", "assignee"))
    write = form(f"/{space}/{name}/-/issues/new", *fields, submit="Create issue")
    return visit.page("New issue", tag("h1", "New issue"), write)


@CODE.post(_PROJECT + "/-/issues/new", signed_in=True)
def _new_issue(visit: Visit, space: str, name: str) -> Response:
    project = _found(visit, space, name)
    if project is None or not visit.text("title"):
        return visit.missing()
    number = max((each.number for each in project.issues), default=0) + 1
    assignee = visit.text("assignee").lstrip("@")
    assignee = assignee if assignee in visit.state.code.users else ""
    issue = Issue(
        number, visit.text("title"), visit.user, [], is_open=True, assignee=assignee, text=visit.text("text")
    )
    project.issues.append(issue)
    return redirect(f"{project.path}/-/issues/{number}")


def _item(project: Project | None, what: str, number: str) -> Issue | MergeRequest | None:
    if project is None:
        return None
    listed: list[Issue] | list[MergeRequest] = project.issues if what == "issues" else project.requests
    return next((each for each in listed if str(each.number) == number), None)


@CODE.get(_PROJECT + r"/-/(issues|merge_requests)/(\d+)")
def _item_page(visit: Visit, space: str, name: str, what: str, number: str) -> Response:
    project = _found(visit, space, name)
    item = _item(project, what, number)
    if project is None or item is None:
        return visit.missing()
    path = f"{project.path}/-/{what}/{number}"
    about = [("State", "open" if item.is_open else "closed"), ("Author", item.author)]
    assign = None
    if isinstance(item, Issue):
        about += [("Labels", ", ".join(item.labels) or "none"), ("Assignee", item.assignee or "none")]
        assign = form(f"{path}/assign", field("New assignee", "assignee"), submit="Assign")
    else:
        about += [("Source branch", item.source)]
    doing = button_form("Close" if item.is_open else "Reopen", f"{path}/toggle")
    write = form(f"{path}/comment", text_area("Comment", "comment"), submit="Add comment")
    return visit.page(
        item.title,
        tag("h1", item.title),
        _links(project),
        facts(about, id="item"),
        doing,
        assign,
        items(item.comments, id="comments"),
        write,
    )


@CODE.post(_PROJECT + r"/-/(issues|merge_requests)/(\d+)/(toggle|comment|assign)", signed_in=True)
def _on_item(visit: Visit, space: str, name: str, what: str, number: str, doing: str) -> Response:
    item = _item(_found(visit, space, name), what, number)
    if item is None:
        return visit.missing()
    if doing == "toggle":
        item.is_open = not item.is_open
    elif doing == "comment" and visit.text("comment"):
        item.comments.append(f"{visit.user}: {visit.text('comment')}")
    elif (
        doing == "assign"
        and isinstance(item, Issue)
        and visit.text("assignee").lstrip("@") in visit.state.code.users
    ):
        item.assignee = visit.text("assignee").lstrip("@")
    return redirect(f"/{space}/{name}/-/{what}/{number}")
