"""Tasks of the repository host, some with the forum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_servers.webarena._sites.code_data import LABELS, ROLES, CodeProject
from agentgym_servers.webarena._sites.forum_data import TOPICS
from agentgym_servers.webarena._templates.steps import Step, click, fill, goto, pick, push, put
from agentgym_servers.webarena._templates.template import (
    Made,
    answer,
    change,
    content,
    exactly,
    reach,
    template,
)

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.webarena._sites.state import SiteState

__all__: list[str] = []

CODE = "__GITLAB__"


def _name(project: CodeProject) -> str:
    return f"{project.space}/{project.name}"


def _opened(project: CodeProject) -> tuple[Step, ...]:
    return (fill("Search projects", project.name), click(_name(project)))


def _mine(state: SiteState, draw: Draw) -> CodeProject:
    return draw.one([each for each in state.code.projects if each.space == state.code.me])


@template("gitlab")
def _most_stars(state: SiteState, draw: Draw) -> Made:
    """The project with the most stars, or their number."""
    best = max(state.code.projects, key=lambda each: each.stars)
    steps = (click("Explore"), click("Sort by stars"))
    if draw.chance(0.5):
        return answer("How many stars does the most starred project have?", str(best.stars), *steps)
    return exactly("Which project has the most stars? Answer as OWNER/PROJECT.", _name(best), *steps)


@template("gitlab")
def _commits_by(state: SiteState, draw: Draw) -> Made:
    """The number of commits of a user."""
    project = draw.one(state.code.projects)
    author = draw.one(project.commits).author
    intent = f"How many commits has {author} made to {_name(project)}?"
    return answer(intent, str(project.commits_of(author)), *_opened(project), click("Contributors"))


@template("gitlab")
def _no_such_project(state: SiteState, draw: Draw) -> Made | None:
    """A question about a project that nobody has started."""
    name = f"{draw.one(('tide', 'heron', 'quartz', 'saffron'))}-{draw.one(('mailer', 'ledger', 'kernel'))}"
    if any(each.name == name for each in state.code.projects):
        return None
    intent = f"How many stars does the project {name} have? Answer N/A if there is no such project."
    return exactly(intent, "N/A", fill("Search projects", name))


@template("gitlab")
def _last_commit(state: SiteState, draw: Draw) -> Made:
    """The date of the last commit."""
    project = draw.one(state.code.projects)
    intent = f"When was the last commit to {_name(project)}? Answer as YYYY-MM-DD."
    return exactly(intent, project.commits[0].date, *_opened(project), click("Commits"))


@template("gitlab")
def _contributor_email(state: SiteState, draw: Draw) -> Made | None:
    """The e-mail address of who made most commits."""
    project = draw.one(state.code.projects)
    authors = {each.author for each in project.commits}
    ranked = sorted((project.commits_of(each), each) for each in authors)
    if len(ranked) > 1 and ranked[-1][0] == ranked[-2][0]:
        return None
    email = state.code.users[ranked[-1][1]]
    intent = f"What is the e-mail address of the contributor with the most commits to {_name(project)}?"
    return exactly(intent, email, *_opened(project), click("Contributors"))


@template("gitlab")
def _clone_address(state: SiteState, draw: Draw) -> Made:
    """The address for a clone."""
    project = draw.one(state.code.projects)
    address = f"git@gitlab.test:{_name(project)}.git"
    return answer(f"Show me the address to clone {_name(project)} with SSH.", address, *_opened(project))


@template("gitlab")
def _open_issues(state: SiteState, draw: Draw) -> Made:
    """The number of open issues."""
    project = draw.one(state.code.projects)
    count = sum(each.is_open for each in project.issues)
    return answer(
        f"How many issues of {_name(project)} are open?", str(count), *_opened(project), click("Issues")
    )


@template("gitlab")
def _list_label(state: SiteState, draw: Draw) -> Made:
    """List issues with a label."""
    project, label = draw.one(state.code.projects), draw.one(LABELS)
    url = f"{CODE}{project.path}/-/issues?label={label}"
    intent = f"Show the open issues of {_name(project)} with the label {label}."
    return reach(intent, url, *_opened(project), click("Issues"), click(f"Label {label}"))


@template("gitlab")
def _open_requests(state: SiteState, draw: Draw) -> Made:
    """Open the merge requests."""
    project = draw.one(state.code.projects)
    url = f"{CODE}{project.path}/-/merge_requests"
    return reach(
        f"Open the merge requests of {_name(project)}.", url, *_opened(project), click("Merge requests")
    )


@template("gitlab")
def _create_issue(state: SiteState, draw: Draw) -> Made:
    """Create an issue."""
    project, user = draw.one(state.code.projects), draw.one(list(state.code.users))
    title = draw.one(
        ("Update the screenshots", "Test on a slow network", "Remove the old logo", "Sign the releases")
    )
    steps = (
        *_opened(project),
        click("Issues"),
        click("New issue"),
        put("Title", title),
        put("Assignee", user),
    )
    number = len(project.issues) + 1
    check = content(f"{CODE}{project.path}/-/issues/{number}", "main", title, user)
    intent = f'Create an issue in {_name(project)} with the title "{title}" and assign it to {user}.'
    return change(intent, check, *steps, push("Create issue"))


@template("gitlab")
def _assign(state: SiteState, draw: Draw) -> Made:
    """Assign an open issue."""
    project, user = _mine(state, draw), draw.one(list(state.code.users))
    issue = draw.one([each for each in project.issues if each.is_open])
    steps = (*_opened(project), click("Issues"), click(issue.title), fill("New assignee", user))
    check = content(f"{CODE}{project.path}/-/issues/{issue.number}", "#item", user)
    return change(f'Assign the issue "{issue.title}" of {_name(project)} to {user}.', check, *steps)


@template("gitlab")
def _close_issue(state: SiteState, draw: Draw) -> Made:
    """Close an open issue."""
    project = _mine(state, draw)
    issue = draw.one([each for each in project.issues if each.is_open])
    steps = (*_opened(project), click("Issues"), click(issue.title), push("Close"))
    check = content(f"{CODE}{project.path}/-/issues/{issue.number}", "#item", "closed")
    return change(f'Close the issue "{issue.title}" of {_name(project)}.', check, *steps)


@template("gitlab")
def _comment_on_request(state: SiteState, draw: Draw) -> Made:
    """Comment on a merge request."""
    project = draw.one(state.code.projects)
    request = draw.one(project.requests)
    text = draw.one(
        ("Looks good to me", "Please add a test", "I will check it tomorrow", "Is this still needed?")
    )
    steps = (*_opened(project), click("Merge requests"), click(request.title), put("Comment", text))
    check = content(f"{CODE}{project.path}/-/merge_requests/{request.number}", "#comments", text)
    intent = f'Comment "{text}" on the merge request "{request.title}" of {_name(project)}.'
    return change(intent, check, *steps, push("Add comment"))


@template("gitlab")
def _invite(state: SiteState, draw: Draw) -> Made:
    """Invite a member."""
    project, role = _mine(state, draw), draw.one(ROLES)
    user = draw.one([each for each in state.code.users if each not in project.members])
    steps = (*_opened(project), click("Members"), put("Username", user), pick(role), push("Invite"))
    check = content(f"{CODE}{project.path}/-/members", "#members", f"{user}\t{role}")
    return change(f"Invite {user} to {_name(project)} as {role}.", check, *steps)


@template("gitlab")
def _fork(state: SiteState, draw: Draw) -> Made:
    """Fork a project."""
    project = draw.one([each for each in state.code.projects if each.space != state.code.me])
    check = content(f"{CODE}/{state.code.me}/{project.name}", "h1", f"{state.code.me}/{project.name}")
    return change(f"Fork {_name(project)}.", check, *_opened(project), push("Fork"))


@template("gitlab")
def _star(state: SiteState, draw: Draw) -> Made:
    """Star a project."""
    project = draw.one(state.code.projects)
    check = content(f"{CODE}{project.path}", "#starred", "You have starred this project.")
    return change(f"Star the project {_name(project)}.", check, *_opened(project), push("Star"))


@template("gitlab")
def _create_project(state: SiteState, draw: Draw) -> Made:
    """Create a project."""
    first, second = draw.one(("lunar", "solar", "polar")), draw.one(("atlas", "diary", "garden", "notes"))
    name = f"{first}-{second}"
    visibility = draw.one(("Private", "Public"))
    steps = (click("New project"), put("Project name", name), pick(visibility), push("Create project"))
    check = content(f"{CODE}/{state.code.me}/{name}", "#about", visibility)
    return change(f"Create a {visibility.lower()} project with the name {name}.", check, *steps)


@template("gitlab")
def _status(state: SiteState, draw: Draw) -> Made:
    """Set the status."""
    text = f"{draw.one(('Out of office', 'In a meeting', 'Reading mail'))} until {draw.between(2, 11)} am"
    check = content(f"{CODE}/-/profile", "#profile", text)
    return change(f'Set my status to "{text}".', check, click("Profile"), fill("New status", text))


@template("gitlab")
def _add_file(state: SiteState, draw: Draw) -> Made:
    """Add a file."""
    project = _mine(state, draw)
    file = draw.one(("NOTICE", "AUTHORS", "CHANGES.md", "SECURITY.md"))
    text = draw.one(("All rights belong to the authors.", "See the readme first.", "Nothing to report yet."))
    steps = (*_opened(project), click("New file"), put("File name", file), put("Content", text))
    check = content(f"{CODE}{project.path}/-/blob/{file}", "#file", text)
    intent = f'Add a file {file} with the content "{text}" to {_name(project)}.'
    return change(intent, check, *steps, push("Commit changes"))


@template("gitlab", "reddit")
def _post_clone_address(state: SiteState, draw: Draw) -> Made:
    """Post about a project in a forum."""
    project, forum = draw.one(state.code.projects), draw.one(list(TOPICS))
    title = f"Have a look at {project.name}"
    steps = (
        *_opened(project),
        goto("__REDDIT__/submit"),
        put("Title", title),
        put("Body", f"It has {project.stars} stars"),
        put("Forum", forum),
        push("Create post"),
    )
    intent = (
        f'Post in the forum {forum} with the title "{title}" and the number of stars of {_name(project)}'
        ' in the form "It has N stars" as the body.'
    )
    return change(intent, content("last", "main", title, f"It has {project.stars} stars"), *steps)
