# A recipe for Spack, of the sources that it lies in (docs/install.md):
#   spack repo add cmake/package/spack
#   spack dev-build lockstep@0.1.0
from spack.package import *


class Lockstep(CMakePackage, CudaPackage):
    """Distributed data-parallel training engine: the same losses, bit for bit, on any number of ranks."""

    license("Apache-2.0")

    version("0.1.0")

    variant("mpi", default=True, description="Communication between processes over MPI, beside TCP")
    variant("onednn", default=True, description="Products and convolutions of the CPU by oneDNN")
    variant("lapack", default=True, description="Factorizations of matrices")
    variant("zstd", default=True, description="Texts that zstd compressed")
    variant("parquet", default=False, description="Texts and examples in Parquet files")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("python@3.9:", type="build")

    depends_on("protobuf@3.21:")
    depends_on("fmt")
    depends_on("cli11")
    depends_on("nlohmann-json")
    depends_on("xxhash")
    depends_on("utf8proc")
    depends_on("zlib-api")
    depends_on("xz")
    depends_on("bzip2")
    depends_on("onednn@2.6:", when="+onednn")
    depends_on("netlib-lapack", when="+lapack")
    depends_on("zstd", when="+zstd")
    depends_on("arrow@19:+parquet", when="+parquet")
    depends_on("mpi", when="+mpi")
    depends_on("cuda@13:", when="+cuda")

    # The processor needs AVX2 and FMA; kernels for AVX-512 are chosen when a program starts.
    requires("target=x86_64_v3:", msg="Lockstep needs an x86-64 processor with AVX2 and FMA")
    # The oldest compilers that are tried (tests/install/compilers).
    conflicts("%gcc@:11", msg="expected GCC 12 or newer, or Clang 14 or newer")
    conflicts("%clang@:13", msg="expected Clang 14 or newer, or GCC 12 or newer")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define("BUILD_TESTING", False),
            self.define("LOCKSTEP_WITH_BENCHMARK", False),
            self.define_from_variant("LOCKSTEP_WITH_MPI", "mpi"),
            self.define_from_variant("LOCKSTEP_WITH_ONEDNN", "onednn"),
            self.define_from_variant("LOCKSTEP_WITH_LAPACK", "lapack"),
            self.define_from_variant("LOCKSTEP_WITH_ZSTD", "zstd"),
            self.define_from_variant("LOCKSTEP_WITH_PARQUET", "parquet"),
            self.define_from_variant("LOCKSTEP_WITH_CUDA", "cuda"),
        ]
        architectures = self.spec.variants["cuda_arch"].value if self.spec.satisfies("+cuda") else ()
        if architectures and "none" not in architectures:
            args.append(self.define("LOCKSTEP_CUDA_ARCHITECTURES", ";".join(architectures)))
        return args
