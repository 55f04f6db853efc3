// Compares the binary interface that Lockstep declares with nccl.h, where that is installed.

#include "dist/nccl/nccl_abi.h"

#include <gtest/gtest.h>

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
#define LS_HAS_NCCL_HEADER 1
#endif

namespace lockstep::dist {
namespace {

#ifdef LS_HAS_NCCL_HEADER

template <class Ours, class Theirs>
constexpr bool same(Ours ours, Theirs theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs) && sizeof(ours) == sizeof(theirs);
}

TEST(NcclAbi, NumbersAreThoseOfItsHeader) {
  using namespace nccl;
  static_assert(same(Result::kSuccess, ncclSuccess));
  static_assert(same(Result::kUnhandledCudaError, ncclUnhandledCudaError));
  static_assert(same(Result::kSystemError, ncclSystemError));
  static_assert(same(Result::kInternalError, ncclInternalError));
  static_assert(same(Result::kInvalidArgument, ncclInvalidArgument));
  static_assert(same(Result::kInvalidUsage, ncclInvalidUsage));
  static_assert(same(Result::kRemoteError, ncclRemoteError));
  static_assert(same(Result::kInProgress, ncclInProgress));
  static_assert(same(DataType::kInt8, ncclInt8));
  static_assert(same(DataType::kUint8, ncclUint8));
  static_assert(same(DataType::kInt32, ncclInt32));
  static_assert(same(DataType::kInt64, ncclInt64));
  static_assert(same(DataType::kFloat16, ncclFloat16));
  static_assert(same(DataType::kFloat32, ncclFloat32));
  static_assert(same(DataType::kFloat64, ncclFloat64));
  static_assert(same(DataType::kBFloat16, ncclBfloat16));
  static_assert(same(RedOp::kSum, ncclSum));
  static_assert(same(RedOp::kProduct, ncclProd));
  static_assert(same(RedOp::kMax, ncclMax));
  static_assert(same(RedOp::kMin, ncclMin));
  static_assert(same(Residence::kHostImmediate, ncclScalarHostImmediate));
  static_assert(kUnset == NCCL_CONFIG_UNDEF_INT && kNoColor == NCCL_SPLIT_NOCOLOR);
  static_assert(version_code(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH) == NCCL_VERSION_CODE);
#ifdef NCCL_SHRINK_ABORT
  static_assert(kShrinkDefault == NCCL_SHRINK_DEFAULT && kShrinkAbort == NCCL_SHRINK_ABORT);
#endif
}

TEST(NcclAbi, StructuresAreThoseOfItsHeader) {
  static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));
  static_assert(alignof(nccl::UniqueId) == alignof(ncclUniqueId));
  static_assert(offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version));
  static_assert(offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
  static_assert(offsetof(nccl::Config, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
  static_assert(offsetof(nccl::Config, min_ctas) == offsetof(ncclConfig_t, minCTAs));
  static_assert(offsetof(nccl::Config, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
  static_assert(offsetof(nccl::Config, net_name) == offsetof(ncclConfig_t, netName));
  static_assert(offsetof(nccl::Config, split_share) == offsetof(ncclConfig_t, splitShare));
#if NCCL_VERSION_CODE >= 22500
  static_assert(offsetof(nccl::Config, traffic_class) == offsetof(ncclConfig_t, trafficClass));
#endif
  static_assert(sizeof(nccl::Config) <= sizeof(ncclConfig_t));
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(nccl::Config().magic, theirs.magic);
}

template <class Ours, class Theirs>
struct PassedAlike : std::bool_constant<sizeof(Ours) == sizeof(Theirs) &&
                                        std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
                                        std::is_class_v<Ours> == std::is_class_v<Theirs>> {};

template <class Ours, class Theirs>
struct CalledAlike : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct CalledAlike<R (*)(A...), S (*)(B...)>
    : std::bool_constant<PassedAlike<R, S>::value && (PassedAlike<A, B>::value && ...)> {
};

TEST(NcclAbi, FunctionsTakeWhatItsHeaderSays) {
#define LS_CHECK_FUNCTION(name, result, arguments) \
  static_assert(CalledAlike<decltype(nccl::Functions::name), decltype(&::name)>::value, #name);
  LS_NCCL_FUNCTIONS(LS_CHECK_FUNCTION)
#ifdef NCCL_SHRINK_ABORT
  LS_NCCL_NEWER_FUNCTIONS(LS_CHECK_FUNCTION)
#endif
#undef LS_CHECK_FUNCTION
}

#else

TEST(NcclAbi, NumbersAreThoseOfItsHeader) { GTEST_SKIP() << "nccl.h is not on this machine"; }

#endif

}  // namespace
}  // namespace lockstep::dist
