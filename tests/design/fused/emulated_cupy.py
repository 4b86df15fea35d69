"""CuPy as far as passes use it, on the processor: kernels are compiled as C++.

The threads of a block take turns: each runs until the kernel lets it wait for the others.
Blocks run one after the other. What is tested is the generated text itself. Compilers read as
little as possible (no <cmath>), and stacks are not initialised, so that unused ones take no memory.
"""

import ctypes
import hashlib
import subprocess
from types import SimpleNamespace

import numpy as np

_SHIM = """
#include <ucontext.h>
struct Place { int x, y; };
static Place threadIdx, blockIdx, blockDim;
static ucontext_t turns, fibres[1024];
static bool ended[1024];
static char stacks[1024 * 65536];
static void __syncthreads() { int t = threadIdx.x; swapcontext(&fibres[t], &turns); }
static double __ldg(const double* p) { return *p; }
static int min(int a, int b) { return a < b ? a : b; }
extern "C" double exp(double); extern "C" double fmax(double, double);
#define __global__
#define __shared__ static
"""
_LAUNCH = """
static struct {{ {fields} }} given_{name};
static void thread_{name}() {{
  auto& g = given_{name}; int t = threadIdx.x;
  {name}({given});
  ended[t] = true;
}}
extern "C" void launch_{name}(int gx, int gy, int threads, {declared}) {{
  given_{name} = {{ {names} }};
  blockDim = {{threads, 1}};
  for (int y = 0; y < gy; y++) for (int x = 0; x < gx; x++) {{
    blockIdx = {{x, y}};
    for (int t = 0; t < threads; t++) {{
      ended[t] = false; getcontext(&fibres[t]);
      fibres[t].uc_stack.ss_sp = &stacks[t * 65536]; fibres[t].uc_stack.ss_size = 65536;
      fibres[t].uc_link = &turns; makecontext(&fibres[t], thread_{name}, 0);
    }}
    for (bool left = true; left;) {{
      left = false;
      for (int t = 0; t < threads; t++) if (!ended[t]) {{
        threadIdx = {{t, 0}}; swapcontext(&turns, &fibres[t]); left = left || !ended[t];
      }}
    }}
  }}
}}
"""
_POINTERS = {"over_inner": (9, 2), "over_outer": (7, 1)}


_ONE_CARD = SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=lambda: 1))


class EmulatedCupy:
    """The module; arrays are those of NumPy."""

    def __init__(self, folder):
        self._folder = folder

    def __getattr__(self, name):
        return getattr(np, name)

    @staticmethod
    def asnumpy(values):
        return np.asarray(values)

    @property
    def cuda(self):
        return _ONE_CARD

    def RawModule(self, code, options):
        return EmulatedModule(code, self._folder)


class EmulatedModule:
    """Compiled kernels."""

    def __init__(self, code, folder):
        names = [
            line.split("void ")[1].split("(")[0] for line in code.split("\n") if "void " in line
        ]
        text = _SHIM + code + "".join(_launcher(name) for name in names)
        path = folder / hashlib.sha256(text.encode()).hexdigest()[:16]
        library = path.with_suffix(".so")
        if not library.exists():
            path.with_suffix(".cpp").write_text(text)
            command = ["g++", "-std=c++17", "-O0", "-w", "-shared", "-fPIC"]
            subprocess.run(
                [*command, str(path.with_suffix(".cpp")), "-o", str(library)], check=True
            )
        self._library = ctypes.CDLL(str(library))

    def get_function(self, name):
        launch = getattr(self._library, f"launch_{name}")

        def run(grid, block, arguments):
            given = [_in_c(value) for value in arguments]
            launch(grid[0], (*grid, 1)[1], block[0], *given)

        return run


def _in_c(value):
    is_array = isinstance(value, np.ndarray)
    return ctypes.c_void_p(value.ctypes.data) if is_array else ctypes.c_int(int(value))


def _launcher(name):
    pointers, numbers = _POINTERS[name if name == "over_inner" else "over_outer"]
    kinds = [("double*", f"p{i}") for i in range(pointers)]
    kinds += [("int", f"n{i}") for i in range(numbers)]
    return _LAUNCH.format(
        name=name,
        fields=" ".join(f"{kind} {n};" for kind, n in kinds),
        declared=", ".join(f"{kind} {n}" for kind, n in kinds),
        names=", ".join(n for _, n in kinds),
        given=", ".join(f"g.{n}" for _, n in kinds),
    )
