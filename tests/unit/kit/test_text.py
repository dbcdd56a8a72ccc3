import pytest

from lamplighter.kit.text import Missing, TemplateError, expand, fields_of, parse, render


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain", "plain"),
        ("a {{.Name}}", "a mayor"),
        ("{{.Deep.Er}}", "x"),
        ("a {{- .Name -}} b", "amayorb"),
        ("a {{- /* a }} comment */ -}}  b", "ab"),
        ("{{if .Yes}}y{{else}}n{{end}}", "y"),
        ("{{if .No}}y{{else if .Yes}}m{{else}}n{{end}}", "m"),
        ("{{if .No}}y{{else if .No}}m{{else}}n{{end}}", "n"),
        ("{{range .List}}<{{.}}>{{end}}", "<a><b>"),
        ("{{range $i, $x := .List}}{{$i}}{{$x}}{{end}}", "0a1b"),
        ("{{range $k, $v := .Deep}}{{$k}}={{$v}}{{end}}", "Er=x"),
        ("{{range .None}}x{{else}}empty{{end}}", "empty"),
        ("{{with .Deep}}{{.Er}}{{$.Name}}{{else}}no{{end}}", "xmayor"),
        ("{{with .No}}a{{else}}b{{end}}", "b"),
        ('{{define "p"}}<{{.}}>{{end}}{{template "p" .Name}}', "<mayor>"),
        ('{{block "p" .Name}}<{{.}}>{{end}}', "<mayor>"),
        ('{{.Name | printf "%q:%s" "k"}}', '"k":mayor'),
        ('{{printf "%d%%" 5}}', "5%"),
        ('{{if and (eq .Name "mayor") (not .No)}}ok{{end}}', "ok"),
        ('{{or .No "fallback"}}', "fallback"),
        ("{{len .List}} {{index .List 1}} {{index .Deep `Er`}}", "2 b x"),
        ("{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}", "2"),
        ("{{$x := 1}}{{if true}}{{$x := 2}}{{$x}}{{end}}{{$x}}", "21"),
        ("{{true}} {{nil}} {{-3}} {{1.5}}", "true  -3 1.5"),
        ('{{"a \\" b"}} {{`raw }}`}}', 'a " b raw }}'),
        ("{{shout .Name}} {{.Name | shout}}", "MAYOR MAYOR"),
        (
            "{{if ne 1 2}}{{if lt 1 2}}{{if le 1 1}}{{if gt 2 1}}{{if ge 1 1}}all{{end}}{{end}}{{end}}{{end}}{{end}}",
            "all",
        ),
        ('{{print "a" 1}}{{println "b"}}', "a1b\n"),
        ("{{.List}} {{.Deep}}", "[a b] map[Er:x]"),
    ],
)
def test_templates_render_as_go_s_do(text: str, wanted: str) -> None:
    data = {"Name": "mayor", "Yes": True, "No": "", "None": [], "List": ["a", "b"], "Deep": {"Er": "x"}}
    assert render(parse(text), data, functions={"shout": str.upper}) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{", "`{{` is not closed"),
        ("{{/* x", "`{{` is not closed"),
        ("{{}}", "an action is empty"),
        ("{{if .A}}", "`{{if}}` has no `{{end}}`"),
        ("{{end}}", "`{{end}}` closes nothing"),
        ("{{if .A}}{{else}}{{else}}{{end}}", "a second `{{else}}`"),
        ("{{if}}x{{end}}", "`if` needs a value"),
        ("{{if .A}}x{{else wat}}{{end}}", "`else wat` is not known here"),
        ('{{define "a"}}{{else}}{{end}}', "takes no `{{else}}`"),
        ("{{define a}}{{end}}", "needs a name in quotes"),
        ('{{define "a" .}}{{end}}', "takes one name"),
        ("{{.Nmae}}", "there is no `.Nmae`; did you mean `Name`?"),
        ("{{nosuch}}", "`nosuch` is not a function"),
        ("{{.Name .Name}}", "only a function takes arguments"),
        ("{{.Name | .Name}}", "only a function can follow `|`"),
        ("{{(.Name}}", "a `(` is not closed"),
        ("{{.Name )}}", "`)` is out of place"),
        ("{{ | len}}", "a value is missing"),
        ("{{len 3}}", "`len` failed"),
        ("{{range 5}}{{end}}", "`range` goes over lists and tables"),
        ('{{template "x"}}', "there is no template `x`"),
        ('{{define "x"}}{{template "x"}}{{end}}{{template "x"}}', "calls itself without an end"),
        ("{{$x}}", "variable `$x` is not declared"),
        ("{{$x = 1}}", "variable `$x` is not declared"),
        ("{{#}}", "`#` cannot be read"),
        ('{{"\\q"}}', "is not a text that can be read"),
        ("{{printf `%d` `x`}}", "`printf` failed"),
        ("{{ , }}", "`,` is out of place"),
        ("{{" + "(" * 5000 + "}}", "nested too deeply"),
    ],
)
def test_what_is_wrong_with_a_template_is_told_with_file_and_line(text: str, said: str) -> None:
    with pytest.raises(TemplateError) as raised:
        render(parse("one\n" + text, file="prompts/a.md"), {"Name": "mayor", "A": 1})
    assert said in raised.value.message
    assert raised.value.message.startswith("prompts/a.md: line ")


def test_an_error_in_a_partial_names_the_partial() -> None:
    partial = parse('{{define "p"}}\n\n{{.Nope}}{{end}}', file="shared/p.md.tmpl")
    with pytest.raises(TemplateError, match=r"shared/p\.md\.tmpl: line 3"):
        render(parse('{{template "p" .}}'), {}, partials=[partial])


def test_a_partial_is_called_by_its_file_s_name_too() -> None:
    partial = parse("hello", file="shared/p.md.tmpl")
    assert render(parse('{{template "p.md.tmpl" .}}'), {}, partials=[partial]) == "hello"


def test_missing_names_are_empty_where_that_is_asked_for() -> None:
    assert render(parse("[{{.A}}{{.B.C}}]"), {}, missing=Missing.EMPTY) == "[]"


def test_the_names_a_template_asks_for_are_known() -> None:
    text = (
        '{{.A}}{{if .B}}{{.C}}{{end}}{{range .D}}{{.Inner}}{{end}}{{template "x" (len .E)}}{{define "x"}}{{$.F}}{{end}}'
    )
    assert fields_of(parse(text)) == {"A", "B", "C", "D", "E", "F"}


def test_text_without_an_action_is_itself() -> None:
    assert expand("a } b {c}", {}) == "a } b {c}"
