"""Pages of kinds that real sites have, generated: `DOCUMENTS`.

Two readers of pages are compared on them. Nothing in them changes after they have loaded.
"""

from __future__ import annotations

import random
import re
from html import escape

from fake_server import FakeServer, Request, http

__all__ = ["DOCUMENTS", "WEBARENAS_TEXTS", "path_of", "served_pages", "without_numbers"]

_DRAW = random.Random(47)  # noqa: S311 - nothing secret
_WORDS = [
    "order",
    "invoice",
    "customer",
    "blue",
    "green",
    "shipped",
    "pending",
    "total",
    "price",
    "stock",
    "review",
    "rating",
    "quick",
    "brown",
    "lamp",
    "chair",
    "table",
    "report",
    "issue",
    "merge",
    "branch",
    "commit",
    "forum",
    "reply",
    "vote",
    "city",
    "route",
    "minute",
    "wiki",
    "edit",
    "history",
    "search",
]
_PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
_INPUTS = {
    "button": "Go",
    "checkbox": "on",
    "color": "#336699",
    "date": "2024-03-05",
    "datetime-local": "2024-03-05T10:30",
    "email": "a@b.test",
    "file": "",
    "hidden": "secret",
    "image": "",
    "month": "2024-03",
    "number": "42.5",
    "password": "hunter2",
    "radio": "one",
    "range": "30",
    "reset": "Reset all",
    "search": "mugs",
    "submit": "Send",
    "tel": "555 0101",
    "text": "131.95",
    "time": "13:45",
    "url": "http://a.test/",
    "week": "2024-W10",
}


def _words(count: int) -> str:
    return " ".join(_DRAW.choice(_WORDS) for _ in range(count))


def _rows(count: int, columns: int) -> str:
    return "".join(
        f"<tr>{''.join(f'<td>{_words(2)} {row * column}' for column in range(columns))}<td><a"
        f" href='/item/{row}'>Item {row}</a><td><button>Edit</button></tr>"
        for row in range(count)
    )


def _form(attributes: str, labelled: str) -> str:
    fields = []
    for kind, value in _INPUTS.items():
        given = f' value="{value}"' if value else ""
        field = f'<input type="{kind}" id="f-{kind}" name="{kind}"{given} {attributes}>'
        fields.append(labelled.format(kind=kind, field=field))
    return f"<form>{''.join(fields)}</form>"


def _items(tag: str, style: str = "", count: int = 6) -> str:
    return f"<{tag} style='{style}'>{''.join(f'<li>{_words(2)}' for _ in range(count))}</{tag}>"


def _shadow(mode: str, markup: str, light: str) -> str:
    return (
        f"<x-box id=host>{light}</x-box><script>"
        f"document.getElementById('host').attachShadow({{mode: '{mode}'}}).innerHTML = `{markup}`</script>"
    )


def _boxes(style: str, count: int = 5) -> str:
    return "".join(
        f"<div style='{style.format(n=n)}'><a href='/b/{n}'>box {n} {_words(1)}</a></div>"
        for n in range(count)
    )


_TEXT = "".join(
    f"<h2>{_words(3)}</h2><p>{_words(60)} <a href='/w'>{_words(2)}</a> {_words(20)}" for _ in range(9)
)

_BODIES = {
    # Text and lists
    "article": (
        f"<header><nav><a href='/'>Home</a> | <a href='/about'>About</a></nav></header><main><article>{_TEXT}"
        "</article><aside>Related <a href='/r'>reading</a></aside></main><footer>© 2024</footer>"
    ),
    "inline markup": (
        "<p>It is <b>bold</b>, <i>italic</i>, <code>code()</code>, <mark>marked</mark>, H<sub>2</sub>O,"
        " x<sup>2</sup>, <del>old</del> <ins>new</ins>, <abbr title='World Wide Web'>WWW</abbr>, <q>a"
        " quote</q>, <kbd>Ctrl</kbd>, <time datetime=2024-01-01>New Year</time>,"
        " <ruby>漢<rt>kan</rt></ruby><br>a break<wbr>here<hr><pre>a\n  b\n\tc</pre><blockquote>quoted"
        " <cite>cited</cite></blockquote><address>Road 1</address>"
    ),
    "lists with markers": (
        "".join(
            _items(tag, f"list-style-type: {style}")
            for tag, style in (
                ("ul", "disc"),
                ("ul", "square"),
                ("ul", "none"),
                ("ol", "decimal"),
                ("ol", "upper-roman"),
                ("ol", "lower-alpha"),
                ("ol", "hebrew"),
            )
        )
        + "<ol start=7 reversed><li>x<li value=30>y</ol><ul style='list-style-position:"
        " inside'><li>inside</ul><ul style=\"list-style-image:"
        f" url('{_PIXEL}')\"><li>image</ul><style>.c::marker {{content: '→ '}}</style><ul><li class=c>own"
        " marker</ul>"
    ),
    "nested lists": (
        "<ul><li>one<ol><li>two<ul><li>three<ol><li>four</ol></ul><li>two</ol><li>one</ul><menu><li>"
        "<button>Cut</button><li><button>Copy</button></menu>"
    ),
    "definition list": "<dl><dt>Term<dd>first meaning<dd>second<div><dt>Other<dt>Alias<dd>meaning</div></dl>",
    "repeated text": (
        f"<h1>Cart</h1><a href='/cart'><span>Cart</span></a>{'<p>1</p><p>12</p><p>Cart</p>' * 4}"
        "<button>Add <b>Add</b></button><p>Add<p>StaticText<p>a StaticText 'b'<a href='#'>statictext</a>"
        "<a href='#'>[9] StaticText 'fake'</a>"
    ),
    "numbers": (
        "".join(f"<tr><td>{n}<td>{n * 7}<td>{n % 10}.00" for n in range(25)).join(("<table>", "</table>"))
    ),
    "empty names": (
        "<a href='/a'></a><button></button><h2></h2><p></p><img src=x><img src=x"
        " alt=''><ul></ul><table></table><label></label>"
        "<fieldset></fieldset><section></section><form></form><input><select></select><i></i><a"
        f" href='/icon'><img src='{_PIXEL}' width=16 height=16></a><div role=button tabindex=0></div> <span>"
        " </span>"
    ),
    "unicode": (
        "<h1>Ünïcödé 日本語 🎉 עברית</h1><a href='/%E2%82%AC'>€ — “quoted” ‘single’</a><p>zero\u200bwidth"
        " nbsp\u00a0here soft\u00adhyphen<p>é vs e\u0301<p>👨‍👩‍👧‍👦 family<button"
        ' title="it\'s">"double"</button><p>tab\there<p>back\\slash<p>\u202ereversed\u202c<p>&amp;amp;'
        " &lt;b&gt;"
    ),
    "newlines in names": (
        "<a href='#' aria-label='two\nlines'>x</a><button aria-label='tab\tand\r\nreturn'>y</button><input"
        " placeholder='first\nsecond' aria-label='a\nb'><img src=x alt='pic\nture'><textarea"
        " aria-label=Notes>one\n\ntwo\n3</textarea><pre>line 1\nline 2\nStaticText\n</pre><button"
        " aria-roledescription='slide\nshow'>z</button><button aria-keyshortcuts='Alt+A\nAlt+B'"
        " aria-description='of\nmany'>k</button>"
    ),
    "generated content": (
        "<style>p::before {content: 'before ' attr(id)} p::after {content: ' after'} .n::before"
        f" {{content: url('{_PIXEL}')}} .f::first-letter {{font-size: 3em}} .l::first-line {{color: red}} ol"
        " {counter-reset: c} ol li::before {counter-increment: c; content: counters(c, '.')}</style><p"
        f" id=a>text<p class=n>icon<p class=f>{_words(5)}<div class=f>{_words(5)}</div><div"
        f" class=l>{_words(90)}</div><ol><li>x<ol><li>y</ol></ol>"
    ),
    # Tables
    "table": (
        f"<table><caption>Orders</caption><thead><tr><th>A<th>B<th>C<th>D<th>E</thead>"
        f"<tbody>{_rows(40, 3)}</tbody><tfoot><tr><td"
        " colspan=5>Total 40</tfoot></table>"
    ),
    "table with spans": (
        "<table border=1><colgroup><col><col span=2></colgroup><tr><th rowspan=2 scope=row>A<td colspan=2>B"
        "<tr><td>C<td>D<tr><th scope=col abbr=e>E<td headers=x>F<td><table><tr><td>inner</table></table>"
    ),
    "layout table": (
        f"<table role=presentation><tr><td>{_items('ul')}<td>{_TEXT[:300]}<td><a href='/x'>x</a></table>"
    ),
    "sortable grid": (
        "<div role=grid aria-rowcount=90 aria-colcount=2><div role=row><span role=columnheader aria-sort="
        "ascending>Name</span><span role=columnheader>Price</span></div>"
        + "".join(
            f"<div role=row aria-selected={'true' if n == 2 else 'false'}><span"
            f" role=rowheader>n{n}</span><span role=gridcell tabindex=-1>{n}.50</span></div>"
            for n in range(8)
        )
        + "</div><div role=table><div role=rowgroup><div role=row><div role=cell>c</div></div></div></div>"
    ),
    "tree": (
        "<ul role=tree aria-label=Files><li role=treeitem aria-expanded=true aria-level=1>src<ul"
        " role=group><li role=treeitem aria-selected=true>main.py<li role=treeitem>test.py</ul><li"
        " role=treeitem aria-expanded=false>docs</ul><div role=treegrid><div role=row aria-expanded=true"
        " aria-level=1><div role=gridcell>x</div></div></div>"
    ),
    # Forms
    "fields": (
        "<label>Price<input value=131.95></label><textarea aria-label=Note>first line\nsecond"
        " line</textarea><select aria-label=Size><option>Small<option selected>Large</select><select size=3"
        " aria-label=Colour><option>Red<option>Blue</select><input placeholder=Search><input type=checkbox"
        " aria-label=Gift checked>"
    ),
    "form with every input": _form("", "<p><label for='f-{kind}'>{kind}</label> {field}"),
    "form with placeholders": _form("placeholder='type here'", "<label>{kind} {field}</label> "),
    "form required and invalid": _form("required aria-invalid=true", "<p>{field}"),
    "form disabled": f"<fieldset disabled><legend>Closed</legend>{_form('', '<p>{kind}{field}')}</fieldset>",
    "form read only": _form("readonly aria-label='read me' title='a title'", "<p>{field}"),
    "checked inputs": (
        "".join(
            f"<label><input type={kind} name=g {state}> {kind} {state}</label><br>"
            for kind in ("checkbox", "radio")
            for state in ("", "checked", "disabled", "checked disabled")
        )
        + "<input type=checkbox id=mixed aria-label=Mixed><script>mixed.indeterminate = true</script><div"
        " role=switch aria-checked=true tabindex=0>Dark mode</div><div role=checkbox"
        " aria-checked=mixed>Some</div><label><input type=checkbox style='opacity:0;position:absolute'>"
        " hidden box</label><label><input type=checkbox style='display:none'> no box</label>"
    ),
    "select boxes": (
        "<label>Size <select><option>S<option selected>M<option disabled>L</select></label><select multiple"
        " size=4 aria-label=Colours><optgroup label=Warm><option"
        " selected>Red<option>Orange</optgroup><option>Blue</select><select"
        f" aria-label=Long>{''.join(f'<option value={n}>Option {n}' for n in range(60))}</select><select"
        f" size=5 aria-label=Listbox>{''.join(f'<option>Row {n}' for n in range(30))}</select><input list=d"
        " aria-label=Browser><datalist id=d><option>Edge<option>Opera</datalist><select"
        " disabled><option>off</select><select></select>"
    ),
    "textareas": (
        f"<textarea>{_words(200)}</textarea><textarea rows=4 cols=80 placeholder='your"
        " review'></textarea><textarea readonly>fixed</textarea><textarea disabled>off</textarea><textarea"
        " wrap=off>one\ntwo\n\nfour</textarea><textarea style='height:"
        f" 400px'>{chr(10).join(_words(3) for _ in range(60))}</textarea>"
    ),
    "long values": (
        f"<input value='{_words(80)}'><input value='{'x' * 500}' style='width: 60px'><input value='  spaced "
        " '><input value='right' style='text-align: right'><input value=tall style='height: 90px; font-size:"
        " 60px'><input value='0'><input value=' '>"
    ),
    "progress and meter": (
        "<progress></progress><progress value=3 max=10>30%</progress><meter min=0 max=10 value=7 low=3"
        " high=8>7</meter><div role=progressbar aria-valuenow=40 aria-valuemin=0"
        " aria-valuemax=100>loading</div><div role=slider tabindex=0 aria-valuenow=5 aria-valuetext=five"
        " aria-label=Volume></div><div role=spinbutton aria-valuenow=2></div><output>42</output><div"
        " role=scrollbar aria-controls=x aria-valuenow=1></div>"
    ),
    "labels": (
        "<span id=l1>Name</span><span id=l2>first</span><input aria-labelledby='l1 l2'><p id=d>As on the"
        " card</p><input aria-label=Card aria-describedby=d><label for=z>Zip</label><input id=z"
        " aria-errormessage=e aria-invalid=true><span id=e>wrong</span><input title='By title'><label>Wrapped"
        " <input value=v> text</label><fieldset><legend>Pay <b>by</b></legend><label><input"
        " type=radio>Card</label></fieldset><button aria-label=Close>x</button><a href=#"
        " aria-labelledby=none>x</a>"
    ),
    "contenteditable": (
        "<div contenteditable=true aria-label=Body role=textbox aria-multiline=true><p>Rich"
        " <b>text</b></p><ul><li>item</ul></div><span contenteditable>inline</span><div"
        " contenteditable=plaintext-only>plain\ntext</div>"
    ),
    # Widgets
    "menus": (
        "<style>li ul {display: none} li:hover ul {display: block}</style><nav aria-label=Main><ul><li><a"
        " href='/c'>Catalogue</a><ul><li><a href='/c/1'>Mugs</a><li><a href='/c/2'>Lamps</a></ul><li><button"
        " aria-haspopup=true aria-expanded=false aria-controls=m>Account</button><ul id=m hidden><li>Sign"
        " out</ul></ul></nav><div role=menubar><div role=menuitem aria-haspopup=menu tabindex=0>File<div"
        " role=menu><div role=menuitemcheckbox aria-checked=true>Wrap</div><div role=menuitemradio"
        " aria-checked=false>UTF-8</div><div role=separator></div></div></div></div>"
    ),
    "tabs": (
        "<div role=tablist><button role=tab aria-selected=true aria-controls=p1>One</button><button role=tab"
        " aria-selected=false tabindex=-1>Two</button></div><div role=tabpanel id=p1 aria-label=One>panel <a"
        " href='/t'>link</a></div><div role=tabpanel hidden>second</div>"
    ),
    "details": (
        "<details><summary>Closed</summary><p>not shown</p></details><details open><summary>Open"
        " <b>bold</b></summary><p>shown <a"
        " href='/d'>link</a></p><details><summary>Inner</summary>x</details></details><details open>no"
        " summary</details><details"
        " open><p>before</p><summary>Late</summary><p>after</p><summary>Second</summary></details><style>.n"
        " summary {list-style: none}</style><details class=n open><summary>Plain</summary>y</details>"
    ),
    "dialog": (
        f"{_TEXT[:900]}<dialog id=d aria-labelledby=t><h2"
        " id=t>Sure?</h2><button>Yes</button></dialog><script>d.showModal()</script>"
    ),
    "dialog not modal": (
        "<dialog open><form"
        f" method=dialog><button>OK</button></form></dialog><dialog>shut</dialog>{_TEXT[:900]}<div"
        " role=alertdialog aria-modal=true aria-label=Stop><p>Really?</p><button>Go</button></div>"
    ),
    "popover": (
        "<button popovertarget=p>Toggle</button><div popover id=p>popped <a href='/p'>link</a></div><div"
        " popover id=q>hidden</div><script>p.showPopover()</script>"
    ),
    "live regions": (
        "<div role=alert>Saved!</div><div aria-live=polite aria-atomic=true aria-busy=true>3"
        " results</div><div role=status>ok</div><div role=log><p>line 1<p>line 2</div><div"
        " role=timer>10:00</div><div role=marquee>news</div><marquee scrollamount=0>still</marquee>"
    ),
    "roles": "".join(
        f"<div role={role} aria-label='the {role}'>{role} <a href='/{role}'>in {role}</a></div>"
        for role in [
            "article",
            "banner",
            "blockquote",
            "code",
            "complementary",
            "contentinfo",
            "definition",
            "deletion",
            "directory",
            "document",
            "emphasis",
            "feed",
            "figure",
            "form",
            "generic",
            "group",
            "heading",
            "img",
            "insertion",
            "link",
            "list",
            "listitem",
            "main",
            "math",
            "navigation",
            "none",
            "note",
            "paragraph",
            "presentation",
            "region",
            "search",
            "searchbox",
            "strong",
            "subscript",
            "superscript",
            "term",
            "toolbar",
            "tooltip",
        ]
    ),
    "combobox widget": (
        "<label id=cl>City</label><input role=combobox aria-labelledby=cl aria-expanded=true aria-controls=cb"
        " aria-activedescendant=o2 aria-autocomplete=list value=Par><ul id=cb role=listbox><li role=option"
        " id=o1>Padua<li role=option id=o2 aria-selected=true>Paris</ul><div role=combobox"
        " aria-haspopup=listbox tabindex=0>Pick</div>"
    ),
    "carousel": (
        "<div style='width: 400px; overflow: hidden'><div style='display: flex; width: 2000px; transform:"
        f" translateX(-450px)'>{_boxes('width: 400px')}</div></div><button aria-label=Next>»</button>"
    ),
    "pagination": (
        "<nav aria-label=Pages><ol>"
        + "".join(f"<li><a href='?p={n}'{' aria-current=page' * (n == 3)}>{n}</a>" for n in range(1, 12))
        + "</ol></nav><nav aria-label=Breadcrumb><a href='/'>Home</a> » <a href='/x'"
        " aria-current=location>X</a></nav>"
    ),
    # Embedded content
    "iframe of the site": (
        "<h1>Outer</h1><iframe src='/table' title=Orders width=600 height=300></iframe><p>after"
    ),
    "iframe of its own text": (
        "<iframe srcdoc='<h1>Inner</h1><a href=/i>link</a><input value=typed>'></iframe><iframe></iframe>"
        "<iframe srcdoc='' title=empty></iframe><iframe hidden src='/tabs'></iframe>"
    ),
    "nested iframes": (
        "<iframe width=900 height=500 srcdoc=\"<p>one</p><iframe srcdoc='<p>two</p><iframe"
        " src=/tabs></iframe>'></iframe>\"></iframe>"
    ),
    "objects": (
        "<object data='/tabs' type='text/html' width=300 height=100>fallback</object><object"
        " data='/missing'><p>fallback <a href='/f'>link</a></object><embed src='/tabs' type='text/html'"
        " width=200 height=80>"
    ),
    "canvas": (
        "<canvas id=c width=300 height=150 aria-label=Chart role=img>fallback <a"
        " href='/c'>data</a></canvas><canvas><button>inner</button></canvas>"
        "<script>c.getContext('2d').fillRect(0,"
        " 0, 50, 50)</script>"
    ),
    "svg": (
        "<svg width=300 height=120 role=img aria-label=Chart><title>Sales</title><desc>by month</desc><g"
        " transform='rotate(10) scale(1.5)'><rect x=10 y=10 width=40 height=20 /><text x=60"
        " y=40>June</text></g><a href='/s'><text x=10 y=90>a link</text></a><circle cx=200 cy=50 r=20"
        " tabindex=0 role=button aria-label=dot /><foreignObject x=150 y=60 width=90"
        " height=40><p>foreign</p></foreignObject><path d='M0 0L9 9'/></svg><button><svg width=16"
        " height=16><use href='#x'/></svg></button><svg width=10 height=10><symbol"
        " id=x><title>Icon</title></symbol></svg>"
    ),
    "pictures": (
        f"<figure><img src='{_PIXEL}' width=90 height=60 alt='A mug'><figcaption>The"
        f" mug</figcaption></figure><picture><source srcset=x><img src='{_PIXEL}' alt=pic></picture><img"
        f" src=/missing.png alt='broken image'><img src='{_PIXEL}' alt=dot><map name=m><area shape=rect"
        " coords='0,0,50,50' href='/n' alt=North><area shape=default href='/r'></map><img usemap='#m'"
        f" src='{_PIXEL}' width=100 height=100 alt=Map><img src='{_PIXEL}' role=presentation width=9"
        f" height=9><div role=img aria-label=Stars>★★★☆☆</div><input type=image src='{_PIXEL}' alt=Search>"
    ),
    "media": (
        "<video controls width=320 height=200></video><audio controls></audio><video></video><video"
        " controls><track kind=captions label=English><p>no video</p></video>"
    ),
    "math": (
        "<math"
        " display=block><mfrac><mi>a</mi><msqrt><mn>2</mn></msqrt></mfrac>"
        "<mo>=</mo><msup><mi>x</mi><mn>2</mn></msup>"
        "</math><math><mtext>text</mtext></math>"
    ),
    # Shadow trees
    "open shadow": _shadow(
        "open",
        "<h2>In shadow</h2><slot name=s></slot><button>b</button><slot>fallback</slot><slot name=none>"
        "<i>default</i></slot>",
        "light <b slot=s>slotted</b> tail <input value=5>",
    ),
    "closed shadow": _shadow(
        "closed", "<h2>Hidden in shadow</h2><slot></slot><input value=seven><a href='/s'>link</a>", "light"
    ),
    "nested shadow": (
        "<x-a></x-a><script>for (const [name, inner] of [['x-c', '<ul><li>deep <slot></slot></ul>'], ['x-b',"
        " '<x-c><b>mid</b></x-c><slot></slot>'], ['x-a', '<style>b {color: red}</style><x-b><slot"
        " name=q>q</slot></x-b>']]) customElements.define(name, class extends HTMLElement {constructor()"
        " {super(); this.attachShadow({mode: name == 'x-b' ? 'closed' : 'open'}).innerHTML ="
        " inner}})</script><template shadowrootmode=open>x</template><div><template"
        " shadowrootmode=open><p>declared <slot></slot></p></template>light</div>"
    ),
    "slots in another order": _shadow(
        "open",
        "<slot name=b></slot><slot name=a></slot><slot></slot>",
        "<p slot=a>A</p><p>rest</p><p slot=b>B</p><p slot=a>A2</p>",
    ),
    # Layout
    "right to left": (
        "<div dir=rtl lang=ar><h1>مرحبا بالعالم</h1><p>نص <a href='/ar'>رابط</a> abc"
        f" 123</p>{_items('ol')}<input"
        f" value='قيمة'><select><option>واحد</select><table>{_rows(3, 2)}</table></div><bdo"
        " dir=rtl>reversed</bdo>"
    ),
    "right to left page": (
        f"<script>document.dir = 'rtl'</script><h1>שלום</h1>{_boxes('width: 1500px')}<p>{_words(30)}"
    ),
    "vertical writing": (
        f"<div style='writing-mode: vertical-rl; height: 300px'><h2>{_words(3)}</h2><p>{_words(40)}<a"
        " href='/v'>link</a></div><div style='writing-mode: sideways-lr'>side</div>"
    ),
    "transforms": "".join(
        _boxes(f"transform: {each}; width: 120px", 2)
        for each in (
            "rotate(45deg)",
            "scale(2.5)",
            "scale(0)",
            "skew(20deg)",
            "translate(-500px, 10px)",
            "translateX(1240px)",
            "perspective(200px) rotateY(60deg)",
            "matrix(1, 0, 0, -1, 0, 0)",
        )
    ),
    "zoom": (
        _boxes("zoom: 2", 2)
        + _boxes("zoom: .5", 2)
        + "<div style='zoom: 1.7'><input value=5><p>text<p>more</div>"
    ),
    "zoomed page": f"<style>html {{zoom: 1.3}}</style>{_TEXT}{_form('', '<p>{field}')}",
    "sticky and fixed": (
        "<header style='position: fixed; top: 0; background: white; width: 100%'><a href='/'>Shop</a> <input"
        " value=find></header><nav style='position: sticky; top: 30px'><a"
        f" href='/n'>Sections</a></nav>{_TEXT}<footer style='position: fixed; bottom: -5px'><a"
        " href='/help'>Help</a></footer><div style='position: fixed; bottom: -50px'>below</div>"
    ),
    "overflow": (
        "<div style='height: 120px; overflow: auto' id=o>"
        + "".join(f"<p>line {n}" for n in range(60))
        + "</div><div style='overflow: hidden; width: 80px; white-space: nowrap; text-overflow:"
        f" ellipsis'>{_words(9)}</div><div style='height: 30px; overflow-y:"
        f" scroll'>{_items('ul')}</div><script>o.scrollTop = 500</script>"
    ),
    "wide page": (
        "<div style='width:"
        f" 4000px'>{_boxes('display: inline-block; width: 500px', 8)}<p>{_words(200)}</p></div><div"
        f" style='display: flex'>{_boxes('flex: none; width: 430px; margin-left: {n}px')}</div><h1"
        " style='width: 3000px'>wide</h1>"
    ),
    "half visible": (
        _boxes(
            "position: absolute; left: calc(1180px + {n}px * 20); top: calc(20px * {n}); width: 120px;"
            " height: 20px"
        )
        + _boxes("position: absolute; top: calc(650px + {n}px * 14); width: 90px; height: 40px")
        + _boxes("position: absolute; left: calc(-30px * {n}); top: calc(200px + 30px * {n}); width: 100px")
        + _boxes("position: absolute; left: 300px; top: calc(-4px * {n}); width: 400px; height: 17px")
        + "<div role=button style='position: absolute; left: 600px; top: 719.5px; width: 3px; height:"
        " 900px'>sliver</div>"
    ),
    "thin boxes": "".join(
        f"<div role=button aria-label='{width} by {height}' style='width: {width}px; height:"
        f" {height}px'></div>"
        for width in (0, 0.4, 1, 50, 2000)
        for height in (0, 0.4, 0.7, 0.8, 1, 30)
    ),
    "invisible": (
        "<p style='display: none'>none<p style='visibility: hidden'>hidden <b style='visibility:"
        " visible'>but</b><p style='opacity: 0'>clear<p style='clip-path: inset(50%)'>clipped<p"
        " style='position: absolute; clip: rect(0 0 0 0)'>clip<p style='position: absolute; left:"
        " -9999px'>away <a href='/skip'>Skip</a><p hidden>attribute<p hidden=until-found>findable<p"
        " inert>inert <a href='/i'>link</a><p style='content-visibility: hidden'>skipped <i>x</i><div"
        " style='content-visibility: auto'>auto <i>y</i></div><p style='font-size: 0'>tiny<p style='color:"
        " transparent'>see-through<div style='height: 0'>overflowing <a href='/o'>o</a></div><div"
        " style='display: contents'>contents <a href='/c'>c</a></div><noscript>no script</noscript>"
    ),
    "aria-hidden": (
        "<div aria-hidden=true>gone <a href='/g'>link</a></div><p>shown <span"
        " aria-hidden=true>★</span></p><button aria-hidden=true>b</button><div role=presentation>p <h3"
        " role=none>h</h3></div>"
    ),
    "columns": f"<div style='columns: 3'>{_TEXT}</div>",
    "grid and flex": (
        "<div style='display: grid; grid-template-columns: repeat(4, 1fr); gap: 9px'>"
        + "".join(
            f"<article><h3><a href='/p/{n}'>{_words(2)}</a></h3><p>${n}.99<button>Add to"
            " cart</button></article>"
            for n in range(30)
        )
        + f"</div><div style='display: flex; flex-direction: row-reverse'>{_boxes('order: -{n}')}</div>"
    ),
    "floats and wrapped links": (
        f"<img src='{_PIXEL}' style='float: left' width=200 height=100 alt=float><p>{_words(30)} <a"
        f" href='/w'>{_words(40)}</a> {_words(10)} <a href='/blk'><div>block in link</div></a> <span><p>block"
        " in span</p></span>"
    ),
    "forms with names of the browser": (
        "<form id=f><input name=nodeName value=a><input name=childNodes value=b><input name=shadowRoot"
        " value=c><button name=getBoundingClientRect>d</button></form><form><input name=parentNode"
        " value=e></form>"
    ),
    "names of the browser replaced": (
        "<p>text <a href='/n'>link</a><script>class Node {} document.createRange = null; document.body.append"
        "('appended')</script>"
    ),
    "deep": "<div>" * 400 + "<a href='/deep'>deep</a>" + "</div>" * 400,
    "comments and instructions": (
        "<!-- one --><p>a<!-- two -->b<!-- three --></p><script>document.body.append('', 'x', '',"
        " document.createComment('c'), document.createProcessingInstruction('p', 'q'),"
        " document.createElementNS('urn:x', 'y:z'))</script>"
    ),
    "5,000 nodes": f"<table>{_rows(420, 3)}</table>",
    "5,000 nodes in the window": (
        "<div style='font-size: 4px; line-height: 4px'>"
        + "".join(f"<a href='/{n}'>{n}{_DRAW.choice(_WORDS)}</a> " for n in range(1600))
        + "</div>"
    ),
}

DOCUMENTS = {
    "plain text": ("text/plain", "line 1\nline 2 <b>"),
    "json": ("application/json", '{"a": [1, 2]}'),
    "xml": ("application/xml", "<root><a>x</a><!-- c --><b k='v'>y</b></root>"),
    "svg alone": (
        "image/svg+xml",
        "<svg xmlns='http://www.w3.org/2000/svg'><title>Icon</title><text y='9'>hi</text></svg>",
    ),
    "xhtml": (
        "application/xhtml+xml",
        "<html xmlns='http://www.w3.org/1999/xhtml'><body><p>p<br/>q</p><input value='five'/></body></html>",
    ),
    "frameset": (
        "text/html",
        "<frameset cols='50%,50%'><frame src='/plain-text'><frame src='/xml'></frameset>",
    ),
    "quirks mode": ("text/html", "<title>q</title><p>x<table height=100%><tr><td>y</table>"),
    "nothing": ("text/html", ""),
    "no body": ("text/html", "<title>t</title><script>document.body.remove()</script>"),
    "no root": ("text/html", "<title>t</title><script>document.documentElement.remove()</script>"),
    **{
        name: (
            "text/html; charset=utf-8",
            f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(name)}</title><body>{body}",
        )
        for name, body in _BODIES.items()
    },
}
"""The type and the content of each page by its name."""

WEBARENAS_TEXTS = {
    "fields": (
        """
RootWebArea 'fields' focused: True url: /fields
\tStaticText 'Price'
\ttextbox 'Price' required: False
\t\tStaticText '131.95'
\ttextbox 'Note' required: False
\t\tStaticText 'first line'
\t\tStaticText 'second line'
\tcombobox 'Size' hasPopup: menu expanded: False
\tlistbox 'Colour' multiselectable: False orientation: vertical required: False
\t\toption 'Red' selected: False
\t\toption 'Blue' selected: False
\ttextbox 'Search' required: False
\tcheckbox 'Gift' checked: true
"""
    ),
    "closed shadow": (
        """
RootWebArea 'closed shadow' focused: True url: /closed-shadow
\theading 'Hidden in shadow'
\tStaticText 'light'
\ttextbox '' required: False
\t\tStaticText 'seven'
\tlink 'link' url: /s
"""
    ),
    "thin boxes": (
        """
RootWebArea 'thin boxes' focused: True url: /thin-boxes
\tbutton '0.4 by 0.8'
\tbutton '0.4 by 1'
\tbutton '0.4 by 30'
\tbutton '1 by 0.8'
\tbutton '1 by 1'
\tbutton '1 by 30'
\tbutton '50 by 0.8'
\tbutton '50 by 1'
\tbutton '50 by 30'
\tbutton '2000 by 1'
\tbutton '2000 by 30'
"""
    ),
}
"""Texts of some pages by WebArena's processor, without numbers of elements and the address of the site."""


def without_numbers(text: str) -> str:
    """Return the text of a page without the numbers of its elements."""
    return re.sub(r"^(\t*)\[\d+\] ", r"\1", text, flags=re.MULTILINE)


def path_of(name: str) -> str:
    """Return the path of a page in its address."""
    return "/" + name.replace(",", "").replace(" ", "-")


def served_pages() -> FakeServer:
    """Return a server of the pages."""
    return FakeServer(_page)


def _page(request: Request) -> bytes:
    found = [document for name, document in DOCUMENTS.items() if path_of(name) == request.path]
    kind, content = found[0] if found else ("text/plain", "missing")
    return http(content.encode(), "200 OK" if found else "404 Not Found", f"Content-Type: {kind}")
