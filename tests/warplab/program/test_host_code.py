"""The passes over the source: launches, kernels, and code for the device alone."""

from __future__ import annotations

import pytest

from warplab.program.device_source import _without_host_functions
from warplab.program.host_code import SourceError, host_code
from warplab.program.run_program import BuildError, split_command
from warplab.program.source_text import without_compound_literals, without_statement_expressions


def made(text: str):
    return host_code(f'# 1 "prog.cu"\n{text}', ("/cuda",), 0)


@pytest.mark.parametrize(
    ("launch", "call"),
    [
        ("k<<<g, b>>>(x);", "(warplab_configure(g, b), k(x));"),
        ("if (a) k<T, N><<<g, dim3(1, 2), 4, s>>>(f(x), y);",
         "if (a) (warplab_configure(g, dim3(1, 2), 4, s), k<T, N>(f(x), y));"),
        ("ns::k<(N > 1)> <<< g, b >>> (x);", "(warplab_configure( g, b ), ns::k<(N > 1)>  (x));"),
        ("k << <g, b >> >(x);", "(warplab_configure(g, b ), k (x));"),
        ("k<<<n >> 1, b>>>(x);", "(warplab_configure(n >> 1, b), k(x));"),
        ("(*table[i])<<<g, b>>>();", "(warplab_configure(g, b), (*table[i])());"),
        ("o->kernels[2]<<<g, b>>>(\"<<<\");", '(warplab_configure(g, b), o->kernels[2]("<<<"));'),
        ("::k<<<1, 2>>>(); q<<<3, 4>>>();", "(warplab_configure(1, 2), ::k()); (warplab_configure(3, 4), q());"),
    ],
)  # fmt: skip
def test_launches(launch, call):
    assert call in made(f"void f() {{ {launch} }}").text


@pytest.mark.parametrize("text", ['cout << "" << x;', 'cout << "Failed" << endl;', "cout << 'a' << 1 << /**/ 2;"])
def test_strings_are_no_launches(text):
    assert text in made(f"void f() {{ {text} }}").text


def test_a_kernel_hands_over_its_arguments_and_lines_stay():
    text = made(
        "template <class T, class... R>\n__global__ void __launch_bounds__(64) k(const T* __restrict__ a,"
        " float (*b)[4],\n"
        "  R... rest)\n{\n  body(a);\n}\nint after;"
    ).text
    assert "body" not in text
    assert "{(void*)&a, (void*)&b, (void*)&rest..., nullptr}" in text
    assert "__launch_bounds__" not in text
    assert text.split("\n").index("int after;") == 7


def test_bodies_for_the_device_go_and_those_for_both_stay():
    text = made(
        "struct P { int x; __device__ P(int a) : x{a}, y(2) { x = dev(); } int y;\n"
        "__host__ __device__ int both() { return x; }\n__device__ int only() const { return dev(); }\n"
        "__device__ __forceinline__ int operator()(int i) const { return dev(); } };"
        "inline __device__ void operator^=(P& a, P b) { dev(); } __device__ bool operator==(P a, P b) { return dev(); }"
    ).text
    assert "dev()" not in text
    assert "int both() { return x; }" in text
    assert "P(int a);" in text
    assert "operator()(int i) const;" in text
    assert "int only() const;" in text


def test_a_declaration_ends_before_the_preprocessors_line():
    text = made(
        '__device__\ndouble f ( double a )\n# 9 "prog.cu"\n{\n  return __sinf(a);\n}\n__device__\nint g ( );'
    ).text
    assert "double f ( double a );" in text
    assert "__sinf" not in text


def test_variables_of_the_device_are_named_with_their_namespaces():
    found = made(
        "namespace a { namespace { __constant__ float c[3] = {1, 2, 3}; } __device__ int n, *p; }\n"
        "struct T { int x; } __device__ zero __attribute__((unused));\n"
        "extern __constant__ int elsewhere;\nvoid f() { static int local; }\n__device__ volatile int last;\n"
        "namespace b { template <class T> __constant__ T mask[9]; }"
    )
    assert found.variables == ["a::c", "a::n", "a::p", "zero", "last"]
    assert found.templates == ["b::mask"]
    assert "float c[3] = {1, 2, 3};" in found.text


def test_managed_variables_are_told_with_their_sizes():
    found = made(
        "__managed__ int x = 2;\nnamespace a { static __device__ __managed__ float y[4], z; __device__ int n; }"
    )
    assert found.variables == ["x", "a::y", "a::z", "a::n"]
    assert found.managed == ["x", "a::y", "a::z"]
    assert found.text.count("warplab_managed(") == 3
    assert "warplab_managed((void*)&::a::y, sizeof ::a::y)" in found.text


@pytest.mark.parametrize("name", ["unsigned", "const unsigned", "long long", "const T&", "struct P", "unsigned* const"])
def test_the_last_word_of_a_parameter_is_its_name_unless_it_is_of_the_type(name):
    assert "{(void*)&n, (void*)&m, nullptr}" in made(f"__global__ void k({name} n, float m) {{ }}").text
    with pytest.raises(SourceError, match=r"\(number 1\) has no name"):
        made(f"__global__ void k({name}) {{ }}")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("a.cu 10 -x", (["a.cu"], [], ["10", "-x"])),
        ("a.cu b.cpp -Iinc -DN=4 -- -DX", (["a.cu", "b.cpp"], ["-Iinc", "-DN=4"], ["-DX"])),
        ("a.cu -I inc -arch sm_90 -std c++20 data.txt", (["a.cu"], ["-Iinc", "-std=c++20"], ["data.txt"])),
        ("a.cu -lineinfo --std c++17 -gencode arch=compute_70,code=sm_70 8", (["a.cu"], ["-std=c++17"], ["8"])),
        ("a.cu -rdc=true -fmad=false -- -ccbin", (["a.cu"], ["-fmad=false"], ["-ccbin"])),
        ("a.cu -gencode=arch=compute_90a,code=sm_90a", (["a.cu"], ["--gpu-architecture=compute_90a"], [])),
    ],
)
def test_files_options_and_arguments(words, expected):
    assert split_command(words.split()) == expected


@pytest.mark.parametrize(
    "words", ["-I", "-arch", "-D -- 10", "-arch=sm_10", "-arch sm_900", "-gencode=code=sm_90", "-ccbin g++"]
)
def test_an_option_without_its_value_with_a_wrong_one_or_of_nvcc_alone_is_refused(words):
    with pytest.raises(BuildError, match=r"^-\S+ (needs a value|names no architecture|is nvcc's)"):
        split_command(["a.cu", *words.split()])


CLASS = """#line 7 "grid.h"
template <class T> class Grid {
public: template <class U = int> explicit Grid(const std::vector<U>& a) : data{nullptr}, n(a.size()) { fill(a); }
  Grid(const Grid&) = default;
  struct Place { int x; void print() const { puts("x"); } __device__ int y() { return x; } } place;
  std::string name() const;
  friend std::ostream& operator<<(std::ostream& o, const Grid& g) {
#line 30 "grid.h"
    return o; }
  template <typename A = int> __device__ A at(A i) const { if (i) { i++; } return i; }
  static constexpr int twice(int x) { return 2 * x; }
private: T* data = f(1); int n{3}; enum { A, B = 2 }; void (*call)(int); alignas(8) double sum;
};"""


def test_a_type_that_the_device_cannot_read_goes_without_the_hosts_functions_and_keeps_its_lines():
    kept = _without_host_functions(CLASS)
    assert [line.rstrip() for line in kept.split("\n")] == [
        '#line 7 "grid.h"',
        "template <class T> class Grid {",
        "public:",
        "  Grid(const Grid&) = default;",
        "  struct Place { int x;  __device__ int y() { return x; } } place;",
        "",
        "",
        '#line 30 "grid.h"',
        "",
        *CLASS.split("\n")[9:],
    ]
    for text in ("__device__ int f(P p) { if (x) { y(); } }", "struct P f() { g(); }", "struct A;"):
        assert _without_host_functions(text) == text


@pytest.mark.parametrize(
    ("text", "lambdas"),
    [
        ("int b = ({ int t = x;\n t * 2; });", "int b = ([&]{ int t = x; return\n t * 2; }());"),
        ("({ ({ a; }) < b; }) + 1", "([&]{ return ([&]{ return a; }()) < b; }()) + 1"),
        ("if ({ g(';'); x; }) { y; }", "if ([&]{ g(';'); return x; }()) { y; }"),
        ("({ while (x) { x--; } x; })", "([&]{ while (x) { x--; } return x; }())"),
        ("({ __typeof__(x) a = (x); __typeof__(a) b; 2; })", "([&]{ auto a = (x); __typeof__(a) b; return 2; }())"),
        ("({ if (x) return 1; 2; })", None),  # leaves the function around it
        ("f({1, 2}, ({ 3 })); g({[] { a; }})", None),
        ('f("({ a; })")', None),
    ],
)
def test_statement_expressions_become_lambdas(text: str, lambdas: str | None):
    assert without_statement_expressions(text) == (lambdas or text)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("return (float2){x, (y)};", "return float2{x, (y)};"),
        ("f(a, ( ns::P ) { 1, 2 });", "f(a,  ns::P  { 1, 2 });"),
        ("b = c * (T2){ 1, -1 } + (T2){0};", "b = c * T2{ 1, -1 } + T2{0};"),
        ("if (x) {y = 1;}", None),
        ("int f(int) { return 1; } P operator-(P) { return {}; }", None),
        ('for (;;) { } while (x) { z("= (T){"); }', None),
        ("auto f = [&] (x) { };", None),
    ],
)
def test_compound_literals_become_what_every_compiler_reads(text: str, read: str | None):
    assert without_compound_literals(text) == (read or text)
