"""The questions of Academia: each function makes one, or returns None if the draw gives none."""

from __future__ import annotations

from collections import Counter

from agentgym_servers._frame.tool_tasks import Draft, listed, yes_or_no
from agentgym_servers.academia._question_builder import (
    Kind,
    QuestionSubjects,
    author,
    edge,
    neighbours,
    one_best,
    paper,
)

__all__ = ["QUESTIONS"]

_NUMBER = "Answer with a number."
_TITLE = "Answer with the title alone."
_YES_OR_NO = "Answer 'Yes' or 'No'."
_LIST = "Answer with a list: ['name 1', 'name 2', ...]."
_MOST = 7  # nodes to look up one by one, so that a solution stays within the turn limit


def _mutual(subjects: QuestionSubjects) -> Draft | None:
    """How many coauthors do two authors have in common?"""
    one, other = subjects.two_writers()
    common = [each for each in subjects.network.coauthors[one] if each in subjects.network.coauthors[other]]
    goal = f"With how many authors have both {one} and {other} written papers? {_NUMBER}"
    reason = f"In both lists: {listed(common)}. These are {len(common)}."
    return Draft(goal, len(common), neighbours("AuthorNet", one, other), reason=reason) if common else None


def _most_cited_together(subjects: QuestionSubjects) -> Draft | None:
    """Which common paper of two authors is cited most?"""
    one, other = subjects.two_writers()
    papers = subjects.network.papers_of(one, other)
    best = one_best((each.title, each.citations) for each in papers)
    goal = f"Which of the papers that {one} and {other} wrote together has the most citations? {_TITLE}"
    reason = f"The citations: {listed(each.citations for each in papers)}. The most is '{best}'."
    return Draft(goal, best, edge(one, other), reason=reason) if best else None


def _coauthors_of_most_cited(subjects: QuestionSubjects) -> Draft | None:
    """Who are the coauthors of an author's most cited paper?"""
    writer = subjects.writer()
    others = subjects.network.coauthors[writer]
    best = one_best((each.title, each.citations) for each in subjects.network.papers_of(writer))
    if best is None or len(others) > _MOST:
        return None
    best_paper = subjects.network.papers[best]
    most = f"The most citations: {best_paper.citations}."
    (look,) = paper(best_paper)
    calls = (*neighbours("AuthorNet", writer), *edge(writer, *others), look.because(most, look.thought))
    goal = f"With whom did {writer} write the paper that has the most citations of all by {writer}? {_LIST}"
    answer = sorted(each for each in best_paper.authors if each != writer)
    return Draft(goal, answer, calls, reason=f"Its authors except {writer}: {listed(answer)}.")


def _citations_together(subjects: QuestionSubjects) -> Draft | None:
    """How many citations do the common papers of two authors have?"""
    one, other = subjects.two_writers()
    papers = subjects.network.papers_of(one, other)
    goal = f"How many citations do the papers that {one} and {other} wrote together have in all? {_NUMBER}"
    total = sum(each.citations for each in papers)
    reason = f"The citations: {' + '.join(str(each.citations) for each in papers)} = {total}."
    return Draft(goal, total, edge(one, other), reason=reason) if len(papers) > 1 else None


def _closest(subjects: QuestionSubjects) -> Draft | None:
    """With which coauthor did an author write the most papers?"""
    writer = subjects.writer()
    coauthors = subjects.network.coauthors[writer]
    counts = [(each, len(subjects.network.papers_of(writer, each))) for each in coauthors]
    best = one_best(counts)
    goal = f"With which author has {writer} written the most papers? Answer with the name alone."
    calls = neighbours("AuthorNet", writer) + edge(writer, *coauthors)
    reason = f"The papers: {listed(f'{name} {count}' for name, count in counts)}."
    return Draft(goal, best, calls, reason=reason) if best and len(coauthors) <= _MOST else None


def _organizations(subjects: QuestionSubjects) -> Draft | None:
    """Which organizations took part in a paper?"""
    (subject,) = subjects.papers(1)
    found = [subjects.network.organizations[each] for each in subject.authors]
    organizations = sorted(set(found))
    goal = (
        f"For which organizations do the authors of '{subject.title}' work? Answer with a list in which each "
        "is named once: ['organization 1', ...]."
    )
    calls = paper(subject) + author(*subject.authors)
    reason = f"The organizations: {listed(found)}."
    return Draft(goal, organizations, calls, reason=reason) if len(organizations) > 1 else None


def _keyword(subjects: QuestionSubjects) -> Draft | None:
    """Which keyword is most frequent in the common papers of two authors?"""
    one, other = subjects.two_writers()
    papers = subjects.network.papers_of(one, other)
    counts = Counter(word for each in papers for word in each.keywords)
    best = one_best(counts.items())
    goal = (
        f"Which keyword is most frequent in the papers that {one} and {other} wrote together? Answer with "
        "the keyword alone."
    )
    fits = best is not None and 1 < len(papers) <= _MOST
    reason = f"The most frequent keyword is {best}: {counts.most_common(1)[0][1]} times."
    return Draft(goal, best, edge(one, other) + paper(*papers), reason=reason) if fits else None


def _authors(subjects: QuestionSubjects) -> Draft:
    """Who wrote a paper?"""
    (subject,) = subjects.papers(1)
    return Draft(
        f"Who are the authors of '{subject.title}'? {_LIST}",
        sorted(subject.authors),
        paper(subject),
        reason=f"The authors: {listed(subject.authors)}.",
    )


def _overlap(subjects: QuestionSubjects) -> Draft | None:
    """Do two papers have an author in common?"""
    one, other = subjects.papers(2)
    shared = [each for each in one.authors if each in other.authors]
    common = bool(shared)
    if common is not subjects.yes:
        return None
    goal = f"Do '{one.title}' and '{other.title}' have an author in common? {_YES_OR_NO}"
    reason = f"Authors of both: {listed(shared) or 'none'}."
    return Draft(goal, yes_or_no(common), paper(one, other), reason=reason)


def _organization(subjects: QuestionSubjects) -> Draft:
    """Where does an author work?"""
    writer = subjects.writer()
    goal = f"For which organization does {writer} work? Answer with its name alone."
    organization = subjects.network.organizations[writer]
    return Draft(goal, organization, author(writer), reason=f"The organization is {organization}.")


def _same_organization(subjects: QuestionSubjects) -> Draft | None:
    """Do two authors work for the same organization?"""
    one, other = subjects.two_writers()
    first, second = subjects.network.organizations[one], subjects.network.organizations[other]
    right = first == second
    if right is not subjects.yes:
        return None
    goal = f"Do {one} and {other} work for the same organization? {_YES_OR_NO}"
    reason = f"The organizations: {first}, {second}."
    return Draft(goal, yes_or_no(right), author(one, other), reason=reason)


def _cites(subjects: QuestionSubjects) -> Draft:
    """How many papers does a paper cite?"""
    (subject,) = subjects.papers(1)
    goal = f"How many papers of the citation network does '{subject.title}' cite? {_NUMBER}"
    count = len(subject.cited)
    reason = f"It cites {count} paper{'s' * (count != 1)}."
    return Draft(goal, count, neighbours("PaperNet", subject.title), reason=reason)


def _more_citations(subjects: QuestionSubjects) -> Draft | None:
    """Which of two papers is cited more?"""
    one, other = subjects.papers(2)
    best = one_best([(one.title, one.citations), (other.title, other.citations)])
    goal = f"Which paper has more citations: '{one.title}' or '{other.title}'? {_TITLE}"
    reason = f"The citations are {one.citations} and {other.citations}. The more is '{best}'."
    return Draft(goal, best, paper(one, other), reason=reason) if best else None


def _first(subjects: QuestionSubjects) -> Draft | None:
    """Which of two papers is older?"""
    one, other = subjects.papers(2)
    best = one_best([(one.title, -one.year), (other.title, -other.year)])
    goal = f"Which paper was published first: '{one.title}' or '{other.title}'? {_TITLE}"
    reason = f"The years are {one.year} and {other.year}. The first is '{best}'."
    return Draft(goal, best, paper(one, other), reason=reason) if best else None


def _same_venue(subjects: QuestionSubjects) -> Draft | None:
    """Were two papers published at the same venue?"""
    one, other = subjects.papers(2)
    right = one.venue == other.venue
    if right is not subjects.yes:
        return None
    goal = f"Were '{one.title}' and '{other.title}' published in the same venue? {_YES_OR_NO}"
    reason = f"The venues: {one.venue}, {other.venue}."
    return Draft(goal, yes_or_no(right), paper(one, other), reason=reason)


def _years_between(subjects: QuestionSubjects) -> Draft | None:
    """How many years apart were two papers published?"""
    one, other = subjects.papers(2)
    years = abs(one.year - other.year)
    goal = f"How many years lie between '{one.title}' and '{other.title}'? {_NUMBER}"
    reason = f"{max(one.year, other.year)} - {min(one.year, other.year)} = {years}."
    return Draft(goal, years, paper(one, other), reason=reason) if years else None


def _both_conferences(subjects: QuestionSubjects) -> Draft | None:
    """Are two papers both conference papers?"""
    one, other = subjects.papers(2)
    right = one.kind == other.kind == "Conference"
    if right is not subjects.yes:
        return None
    goal = f"Are '{one.title}' and '{other.title}' both conference papers? {_YES_OR_NO}"
    return Draft(goal, yes_or_no(right), paper(one, other), reason=f"They are: {one.kind}, {other.kind}.")


def _colleagues(subjects: QuestionSubjects) -> Draft | None:
    """Which coauthors of an author work for the same organization?"""
    return _coauthors(subjects, same=True)


def _visitors(subjects: QuestionSubjects) -> Draft | None:
    """Which coauthors of an author work for another organization?"""
    return _coauthors(subjects, same=False)


def _coauthors(subjects: QuestionSubjects, *, same: bool) -> Draft | None:
    writer = subjects.writer()
    organizations, coauthors = subjects.network.organizations, subjects.network.coauthors[writer]
    matches = sorted(each for each in coauthors if (organizations[each] == organizations[writer]) is same)
    if not matches or len(coauthors) > _MOST:
        return None
    which = "the same organization as" if same else "another organization than"
    goal = f"Which of the authors that wrote papers with {writer} work for {which} {writer}? {_LIST}"
    which = "The same" if same else "Another"
    reason = f"{writer} works for {organizations[writer]}. {which}: {listed(matches)}."
    return Draft(goal, matches, neighbours("AuthorNet", writer) + author(writer, *coauthors), reason=reason)


def _cited_by_both(subjects: QuestionSubjects) -> Draft | None:
    """Which papers do two papers both cite?"""
    one, other = subjects.papers(2)
    titles = sorted(set(one.cited) & set(other.cited))
    goal = (
        f"Which papers are cited both by '{one.title}' and by '{other.title}'? Answer with a list of their "
        "titles: ['title 1', ...]."
    )
    reason = f"In both lists: {listed(titles)}."
    calls = neighbours("PaperNet", one.title, other.title)
    return Draft(goal, titles, calls, reason=reason) if titles else None


QUESTIONS: tuple[Kind, ...] = (
    _mutual,
    _most_cited_together,
    _coauthors_of_most_cited,
    _citations_together,
    _closest,
    _organizations,
    _keyword,
    _authors,
    _overlap,
    _organization,
    _same_organization,
    _cites,
    _more_citations,
    _first,
    _same_venue,
    _years_between,
    _both_conferences,
    _colleagues,
    _visitors,
    _cited_by_both,
)
"""All kinds of questions."""
