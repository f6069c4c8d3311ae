"""The repository host: projects with issues, merge requests, commits, members and files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from agentgym_servers.webarena._sites.code_data import LABELS, ROLES, CodeProject, Issue, MergeRequest
from agentgym_servers.webarena._sites.html import (
    Html,
    button_form,
    choice,
    facts,
    field,
    form,
    items,
    link,
    table,
    tag,
    text_area,
)
from agentgym_servers.webarena._sites.web import NotFound, Response, Site, Visit, address, or_404, redirect

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

_PROJECT = "/{space}/{name}"
_ITEM = _PROJECT + "/-/{kind}/{number}"


def _projects(projects: list[CodeProject]) -> Html:
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
    project = CodeProject(visit.user, name, "", 0, 0, visibility, members={visit.user: "Maintainer"})
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


def _found(visit: Visit, space: str, name: str) -> CodeProject:
    project = or_404(visit.state.code.project(space, name))
    if project.visibility == "Private" and visit.user not in project.members:
        raise NotFound
    return project


def _links(project: CodeProject) -> Html:
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


@CODE.post(_PROJECT + "/-/star", signed_in=True)
def _star(visit: Visit, space: str, name: str) -> Response:
    project = _found(visit, space, name)
    project.starred = not project.starred
    return redirect(project.path)


@CODE.post(_PROJECT + "/-/fork", signed_in=True)
def _fork(visit: Visit, space: str, name: str) -> Response:
    project, code = _found(visit, space, name), visit.state.code
    if code.project(visit.user, name) is not None:
        return redirect(project.path)
    project.forks += 1
    fork = CodeProject(visit.user, name, project.about, 0, 0, members={visit.user: "Maintainer"})
    fork.files = dict(project.files)
    code.projects.append(fork)
    return redirect(fork.path)


@CODE.get(_PROJECT + "/-/blob/{file}")
def _file(visit: Visit, space: str, name: str, file: str) -> Response:
    project = _found(visit, space, name)
    content = or_404(project.files.get(file))
    return visit.page(file, tag("h1", file), _links(project), tag("pre", content, id="file"))


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
    if visit.user not in project.members or not re.fullmatch("[A-Za-z0-9._-]{1,60}", file):
        raise NotFound
    project.files[file] = visit.text("content")
    return redirect(f"{project.path}/-/blob/{file}")


def _listed(visit: Visit, project: CodeProject, title: str, *body: object) -> Response:
    return visit.page(f"{title} of {project.name}", tag("h1", title), _links(project), *body)


@CODE.get(_PROJECT + "/-/issues")
def _issues(visit: Visit, space: str, name: str) -> Response:
    project = _found(visit, space, name)
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
    count = tag("p", f"{len(rows)} issues")
    shown = (tag("p", states), tag("p", labels), new, count, table((), rows, id="issues"))
    return _listed(visit, project, "Issues", *shown)


@CODE.get(_PROJECT + "/-/merge_requests")
def _merge_requests(visit: Visit, space: str, name: str) -> Response:
    project = _found(visit, space, name)
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
    return _listed(visit, project, "Merge requests", table((), rows))


@CODE.get(_PROJECT + "/-/commits")
def _commits(visit: Visit, space: str, name: str) -> Response:
    project = _found(visit, space, name)
    rows = [(each.date, each.message, each.author, each.sha) for each in project.commits]
    return _listed(visit, project, "Commits", table(("Date", "Message", "Author", "Commit"), rows))


@CODE.get(_PROJECT + "/-/members")
def _members(visit: Visit, space: str, name: str) -> Response:
    project = _found(visit, space, name)
    shown = table(("User", "Role"), list(project.members.items()), id="members")
    if project.members.get(visit.user) != "Maintainer":
        return _listed(visit, project, "Members", shown)
    fields = (field("Username", "user"), choice("Role", "role", ROLES, "Guest"))
    invite = form(f"{project.path}/-/members", *fields, submit="Invite")
    return _listed(visit, project, "Members", shown, tag("h2", "Invite a member"), invite)


@CODE.get(_PROJECT + "/-/contributors")
def _contributors(visit: Visit, space: str, name: str) -> Response:
    project, users = _found(visit, space, name), visit.state.code.users
    commits = Counter(each.author for each in project.commits)
    authors = sorted(commits, key=lambda each: (-commits[each], each))
    rows = [(each, users[each], f"{commits[each]} commits") for each in authors]
    return _listed(visit, project, "Contributors", table(("User", "E-mail", "Commits"), rows))


@CODE.post(_PROJECT + "/-/members", signed_in=True)
def _invite(visit: Visit, space: str, name: str) -> Response:
    project, user, role = _found(visit, space, name), visit.text("user").lstrip("@"), visit.text("role")
    if project.members.get(visit.user) != "Maintainer":
        raise NotFound
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
    if not visit.text("title"):
        raise NotFound
    number = max((each.number for each in project.issues), default=0) + 1
    assignee = visit.text("assignee").lstrip("@")
    assignee = assignee if assignee in visit.state.code.users else ""
    issue = Issue(
        number, visit.text("title"), visit.user, [], is_open=True, assignee=assignee, text=visit.text("text")
    )
    project.issues.append(issue)
    return redirect(f"{project.path}/-/issues/{number}")


def _item(visit: Visit, space: str, name: str, kind: str, number: str) -> Issue | MergeRequest:
    project = _found(visit, space, name)
    listed: Mapping[str, Sequence[Issue | MergeRequest]]
    listed = {"issues": project.issues, "merge_requests": project.requests}
    for each in or_404(listed.get(kind)):
        if str(each.number) == number:
            return each
    raise NotFound


@CODE.get(_ITEM)
def _item_page(visit: Visit, space: str, name: str, kind: str, number: str) -> Response:
    project, item = _found(visit, space, name), _item(visit, space, name, kind, number)
    path = f"{project.path}/-/{kind}/{number}"
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


@CODE.post(_ITEM + "/toggle", signed_in=True)
def _toggle(visit: Visit, space: str, name: str, kind: str, number: str) -> Response:
    item = _item(visit, space, name, kind, number)
    item.is_open = not item.is_open
    return redirect(f"/{space}/{name}/-/{kind}/{number}")


@CODE.post(_ITEM + "/comment", signed_in=True)
def _comment(visit: Visit, space: str, name: str, kind: str, number: str) -> Response:
    item = _item(visit, space, name, kind, number)
    if visit.text("comment"):
        item.comments.append(f"{visit.user}: {visit.text('comment')}")
    return redirect(f"/{space}/{name}/-/{kind}/{number}")


@CODE.post(_ITEM + "/assign", signed_in=True)
def _assign(visit: Visit, space: str, name: str, kind: str, number: str) -> Response:
    item, assignee = _item(visit, space, name, kind, number), visit.text("assignee").lstrip("@")
    if isinstance(item, Issue) and assignee in visit.state.code.users:
        item.assignee = assignee
    return redirect(f"/{space}/{name}/-/{kind}/{number}")
