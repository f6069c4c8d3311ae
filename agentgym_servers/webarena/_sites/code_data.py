"""The data of the repository host: projects, issues, merge requests, commits, members and users."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentgym_servers.webarena._sites.words import people, spread

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["LABELS", "ROLES", "Code", "CodeProject", "Commit", "Issue", "MergeRequest", "draw_code"]

ROLES = ("Guest", "Reporter", "Developer", "Maintainer")
LABELS = ("bug", "documentation", "feature", "question")
_KINDS = (
    "parser,viewer,scheduler,toolkit,server,client,compiler,indexer,tracker,gallery,mailer,planner".split(",")
)
_WORDS = (
    "amber,basalt,cobalt,dune,ember,fjord,garnet,heron,iris,jasper,kelp,lotus,mica,nectar,opal,pebble".split(
        ","
    )
)
_PROBLEMS = (
    "Crash when the file is empty|Typo on the start page|Slow start on old machines|Button has no "
    "label|Wrong time zone in reports|Memory grows over night|Dark theme is unreadable|Export forgets the"
    " last row|Search ignores umlauts|Setup guide is outdated|Add a keyboard shortcut|Support larger "
    "files|Explain the settings|Which version is stable|Retry when the network fails|Show a progress bar"
).split("|")
_CHANGES = (
    "Fix the build|Update the readme|Add tests|Remove dead code|Rename the settings|Speed up the "
    "search|Handle empty input|Bump the version|Translate the menu|Document the format"
).split("|")


@dataclass
class Issue:
    """An issue."""

    number: int
    title: str
    author: str
    labels: list[str]
    is_open: bool
    assignee: str = ""
    comments: list[str] = field(default_factory=list)
    text: str = ""


@dataclass
class MergeRequest:
    """A merge request."""

    number: int
    title: str
    author: str
    source: str
    is_open: bool
    comments: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Commit:
    """A commit."""

    sha: str
    message: str
    author: str
    date: str


@dataclass
class CodeProject:
    """A project of a user or a group."""

    space: str
    name: str
    about: str
    stars: int
    forks: int
    visibility: str = "Public"
    issues: list[Issue] = field(default_factory=list)
    requests: list[MergeRequest] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    members: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    starred: bool = False

    @property
    def path(self) -> str:
        """The address on the site."""
        return f"/{self.space}/{self.name}"

    def commits_of(self, author: str) -> int:
        """Return the number of a user's commits."""
        return sum(each.author == author for each in self.commits)


@dataclass
class Code:
    """All data of the repository host.

    Attributes:
        me: The name of the user whose account the agent uses.
        users: The names of all users, with their e-mail addresses.
        status: The status text of the agent's account.
    """

    me: str
    users: dict[str, str]
    projects: list[CodeProject]
    status: str = ""

    def project(self, space: str, name: str) -> CodeProject | None:
        """Return a project by its address."""
        return next((each for each in self.projects if (each.space, each.name) == (space, name)), None)


def draw_code(draw: Draw) -> Code:
    """Draw the data of a repository host."""
    names = [full.split()[0].lower() + full.split()[1][:2].lower() for full in people(draw, 14)]
    names = list(dict.fromkeys(names))
    users = {name: f"{name}@example.org" for name in names}
    code = Code(names[0], users, [])
    words = draw.some(_WORDS, 12)
    stars = draw.some(range(2, 900), 12)
    for n, (word, kind, count) in enumerate(zip(words, draw.shuffled(_KINDS), stars, strict=True)):
        space = names[0] if n % 3 == 0 else draw.one(names[1:6])
        project = CodeProject(space, f"{word}-{kind}", f"A {kind} named {word}", count, draw.between(0, 60))
        code.projects.append(project)
        _fill(draw, project, names)
    return code


def _fill(draw: Draw, project: CodeProject, names: list[str]) -> None:
    team = draw.some([each for each in names if each != project.space], 4)
    project.members = {project.space: "Maintainer", **{each: draw.one(ROLES) for each in team[:3]}}
    writers = [project.space, *team]
    for title in draw.some(_PROBLEMS, 8):
        issue = Issue(
            len(project.issues) + 1, title, draw.one(writers), [draw.one(LABELS)], not draw.chance(0.35)
        )
        project.issues.append(issue)
    for number, title in enumerate(draw.some(_CHANGES, 3), 1):
        branch = "-".join(title.lower().split())
        project.requests.append(MergeRequest(number, title, draw.one(team), branch, is_open=True))
    dates = sorted((spread(draw, 2023, draw.between(1, 5)) for _ in range(12)), reverse=True)
    project.commits = [
        Commit(f"{draw.below(1 << 32):08x}", draw.one(_CHANGES), draw.one(writers), date) for date in dates
    ]
    readme = f"# {project.name}\n\n{project.about}. Write to {project.space}@example.org."
    project.files = {"README.md": readme, "main.py": f'print("{project.name}")'}
