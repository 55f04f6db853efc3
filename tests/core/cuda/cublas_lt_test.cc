#include "core/cuda/cublas_lt.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "tests/core/base/environment_variable.h"
#include "tests/core/expect_error.h"

namespace lockstep::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

size_t version_11() { return 111103; }
cublasStatus_t no_driver(cublasLtHandle_t*) { return CUBLAS_STATUS_NOT_INITIALIZED; }

TEST(CublasLt, IsLookedForByVersionInNamedFoldersInTheSystemsAndInTheToolkits) {
  const EnvironmentVariable named("LOCKSTEP_CUDA_LIBRARIES", "/first::/second:");
  const EnvironmentVariable home("CUDA_HOME", "/home");
  const EnvironmentVariable path("CUDA_PATH", nullptr);
  EXPECT_THAT(
      cublas_lt_files(),
      ElementsAre("/first/libcublasLt.so.13", "/second/libcublasLt.so.13", "libcublasLt.so.13",
                  "/home/lib64/libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13",
                  "/first/libcublasLt.so.12", "/second/libcublasLt.so.12", "libcublasLt.so.12",
                  "/home/lib64/libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.12"));
}

TEST(CublasLt, ALibraryThatIsNotThereIsTheReason) {
  EXPECT_THAT(load_cublas_lt("libno-such-cublas.so").reason,
              StartsWith("libno-such-cublas.so: cannot open shared object file"));
}

TEST(CublasLt, ALibraryWithoutAFunctionIsNamedWithTheFunction) {
  const LoadedCublasLt loaded = load_cublas_lt("libm.so.6");
  EXPECT_EQ(loaded.reason, "libm.so.6 has no cublasLtGetVersion: expected cuBLASLt 13 or 12");
  EXPECT_EQ(loaded.functions.cublasLtMatmul, nullptr);
}

TEST(CublasLt, AnotherVersionIsNotUsed) {
  const LoadedCublasLt loaded =
      read_cublas_lt("/a/b.so", [](const char*) { return reinterpret_cast<void*>(&version_11); });
  EXPECT_EQ(loaded.reason, "/a/b.so is cuBLASLt 11.11.3: expected version 13 or 12");
}

TEST(CublasLt, WithoutALibraryAHandleIsAnErrorThatSaysWhy) {
  CublasLtLibrary library([] {
    LoadedCublasLt none;
    none.reason = "there is none";
    return none;
  });
  expect_error<DeviceError>([&] { library.handle(0); }, "there is none");
}

TEST(CublasLt, ADriverThatIsTooOldForTheLibraryIsAnErrorThatSaysWhatToDo) {
  CublasLtLibrary library([] {
    LoadedCublasLt loaded;
    loaded.functions.cublasLtCreate = &no_driver;
    loaded.version = 130100;
    loaded.file = "/a/b.so";
    return loaded;
  });
  expect_error<DeviceError>([&] { library.handle(0); }, "/a/b.so is cuBLASLt 13.1.0",
                            "Install a driver for CUDA 13");
}

TEST(CublasLt, TheInstalledLibraryHasEveryFunctionAndTakesTheseAttributes) {
  const LoadedCublasLt loaded = load_cublas_lt();
  if (!loaded.reason.empty()) GTEST_SKIP() << loaded.reason;
  const CublasLt& lt = loaded.functions;
  cublasLtMatmulDescOpaque_t operation{};
  ASSERT_EQ(lt.cublasLtMatmulDescInit_internal(&operation, sizeof(operation), CUBLAS_COMPUTE_32F,
                                               CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  const auto takes = [&](cublasLtMatmulDescAttributes_t which, auto value) {
    return lt.cublasLtMatmulDescSetAttribute(&operation, which, &value, sizeof(value)) ==
           CUBLAS_STATUS_SUCCESS;
  };
  EXPECT_TRUE(takes(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{CUBLAS_OP_T}));
  EXPECT_FALSE(takes(CUBLASLT_MATMUL_DESC_TRANSA, int64_t{CUBLAS_OP_T})) << "of another size";
  for (const cublasLtEpilogue_t epilogue :
       {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
        CUBLASLT_EPILOGUE_DGELU}) {
    EXPECT_TRUE(takes(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(epilogue))) << epilogue;
  }
  EXPECT_TRUE(takes(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(&operation)));
  EXPECT_TRUE(takes(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t{8}));
  EXPECT_TRUE(takes(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t{CUDA_R_16BF}));
  EXPECT_TRUE(takes(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(&operation)));
  EXPECT_TRUE(takes(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, int64_t{8}));
  cublasLtMatrixLayoutOpaque_t layout{};
  ASSERT_EQ(lt.cublasLtMatrixLayoutInit_internal(&layout, sizeof(layout), CUDA_R_16BF, 8, 4, 8),
            CUBLAS_STATUS_SUCCESS);
  const int32_t batch = 2;
  const int64_t stride = 32;
  EXPECT_EQ(lt.cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                                sizeof(batch)),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(lt.cublasLtMatrixLayoutSetAttribute(
                &layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)),
            CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace lockstep::cuda
