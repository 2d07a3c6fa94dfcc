"""Builds the compiled part of quadboost; everything that can be said without code is in pyproject.toml."""

import os
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

# The same data must give the same bits on every machine: no -ffast-math, no -march=native, and no
# contraction to fused multiply-add, which rounds once where two operations round twice.
UNIX_FLAGS = ["-O3", "-g0", "-ffp-contract=off"]
# Cython asks for its conversions of arguments to be inlined wherever they are called, which takes time to compile.
# Without this, -O3 still inlines small functions.
UNIX_FLAGS += ["-DCYTHON_INLINE=__attribute__((__unused__))"]
MSVC_FLAGS = ["/O2", "/fp:precise"]

# (compiler flags, linker flags) to try in turn.
UNIX_OPENMP = [
    (["-fopenmp"], ["-fopenmp"]),  # gcc, clang
    (["-Xpreprocessor", "-fopenmp"], ["-lomp"]),  # Apple clang with libomp
]
MSVC_OPENMP = [(["/openmp"], [])]

OPENMP_PROGRAM = """
#include <omp.h>
int main(void) { return omp_get_max_threads() < 1; }
"""

# Kernels trust their callers: indices are checked once, in Python, before a kernel is called.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "auto_pickle": False,  # addresses cannot be pickled; a class that can be has its own __reduce__
}


# What Cython adds to every module (views of memory, above all) is compiled once: that is half of the time of a build.
SHARED = "quadboost.kernels.shared"
# Modules whose loops take no time, if they have any: the compiler need not take much either.
COLD = {SHARED: ["-O0"], "quadboost.kernels.store": ["-O1"], "quadboost.kernels.quantiles": ["-O1"]}


class BuildExt(build_ext):
    """build_ext that adds the flags of the compiler at hand, and OpenMP where there is one."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self) -> None:
        msvc = self.compiler.compiler_type == "msvc"
        flags = MSVC_FLAGS if msvc else UNIX_FLAGS
        openmp_compile, openmp_link = self.find_openmp(MSVC_OPENMP if msvc else UNIX_OPENMP)
        for extension in self.extensions:
            extension.extra_compile_args += flags + openmp_compile
            extension.extra_link_args += openmp_link
            if not msvc:
                extension.extra_compile_args += COLD.get(extension.name, [])
        self.force = self.flags_changed(flags + openmp_compile) or self.force
        self.write_c()
        super().build_extensions()

    def write_c(self) -> None:
        """Run Cython here, in one thread: only the C compiler runs in parallel."""
        from Cython.Build import cythonize  # only a build needs these two
        from numpy import get_include

        written = cythonize(
            self.extensions,
            build_dir=self.build_temp,
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED,
            force=self.force,
        )
        sources = {extension.name: extension.sources for extension in written}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
            extension.include_dirs.append(get_include())

    def flags_changed(self, flags: list[str]) -> bool:
        """Whether build/ was made with other flags: setuptools only looks at the age of the sources."""
        stamp = Path(self.build_temp, "flags")
        before = stamp.read_text() if stamp.exists() else ""
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(" ".join(flags))
        return before != stamp.read_text()

    def find_openmp(self, candidates: list[tuple[list[str], list[str]]]) -> tuple[list[str], list[str]]:
        """Return the first flags that build an OpenMP program, or none: kernels then use one thread."""
        if os.environ.get("QUADBOOST_NO_OPENMP", "0") not in ("", "0"):
            print("quadboost: OpenMP switched off by QUADBOOST_NO_OPENMP")
            return [], []
        for compile_flags, link_flags in candidates:
            if self.builds(OPENMP_PROGRAM, compile_flags, link_flags):
                print(f"quadboost: OpenMP by {' '.join(compile_flags)}")
                return compile_flags, link_flags
        print("quadboost: the compiler has no OpenMP, building for a single thread")
        return [], []

    def builds(self, program: str, compile_flags: list[str], link_flags: list[str]) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text(program)
            try:
                objects = self.compiler.compile([str(source)], output_dir=folder, extra_postargs=compile_flags)
                self.compiler.link_executable(objects, "probe", output_dir=folder, extra_postargs=link_flags)
            except (CompileError, LinkError):
                return False
        return True


def extension(name: str, source: str) -> Extension:
    return Extension(
        name,
        [source],
        depends=[header.as_posix() for header in sorted(Path("quadboost/kernels").glob("*.h"))],
        include_dirs=["quadboost/kernels"],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
    )


sources = sorted(Path("quadboost").rglob("*.pyx"))
setup(
    ext_modules=[
        extension(SHARED, SHARED.replace(".", "/") + ".c"),  # Cython writes this file
        *(extension(".".join(source.with_suffix("").parts), source.as_posix()) for source in sources),
    ],
    cmdclass={"build_ext": BuildExt},
)
