#pragma once

#include <climits>
#include <cstddef>

/// The part of NCCL's ABI that Lockstep calls. It is declared here so that builds do not need
/// NCCL's header and tests can supply functions of their own. Values and layouts are those of NCCL
/// (tests/dist/nccl/nccl_abi_test.cc compares them if its header is found).
namespace lockstep::dist::nccl {

struct Comm;    ///< ncclComm
struct Window;  ///< ncclWindow_vidmem

struct UniqueId {
  char bytes[128];
};

enum class Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum class DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBFloat16 = 9,
};

/// Other values are returned by ncclRedOpCreatePreMulSum.
enum class RedOp : int { kSum = 0, kProduct = 1, kMax = 2, kMin = 3 };

enum class Residence : int { kDevice = 0, kHostImmediate = 1 };

inline constexpr int kUnset = INT_MIN;
inline constexpr int kNoColor = -1;
inline constexpr int kShrinkDefault = 0;
inline constexpr int kShrinkAbort = 1;
inline constexpr int kWindowSymmetric = 1;  ///< NCCL_WIN_COLL_SYMMETRIC

/// Version code as NCCL defines it from 2.9 on.
constexpr int version_code(int major, int minor, int patch) {
  return major * 10000 + minor * 100 + patch;
}

/// ncclConfig_t of NCCL 2.25. Later versions use defaults for their new fields because `version`
/// says that these are missing; earlier versions ignore fields that they do not know.
struct Config {
  size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = static_cast<unsigned int>(version_code(2, 25, 0));
  int blocking = kUnset;
  int cga_cluster_size = kUnset;
  int min_ctas = kUnset;
  int max_ctas = kUnset;
  const char* net_name = nullptr;
  int split_share = kUnset;
  int traffic_class = kUnset;
};

// Name, result and arguments of each function. NCCL 2.19 has all of them.
#define LS_NCCL_FUNCTIONS(X)                                                                      \
  X(ncclGetVersion, Result, (int* version))                                                       \
  X(ncclGetErrorString, const char*, (Result))                                                    \
  X(ncclGetLastError, const char*, (Comm*))                                                       \
  X(ncclGetUniqueId, Result, (UniqueId*))                                                         \
  X(ncclCommInitRankConfig, Result, (Comm**, int size, UniqueId, int rank, Config*))              \
  X(ncclCommFinalize, Result, (Comm*))                                                            \
  X(ncclCommDestroy, Result, (Comm*))                                                             \
  X(ncclCommAbort, Result, (Comm*))                                                               \
  X(ncclCommGetAsyncError, Result, (Comm*, Result*))                                              \
  X(ncclCommSplit, Result, (Comm*, int color, int key, Comm**, Config*))                          \
  X(ncclCommRegister, Result, (Comm*, void*, size_t bytes, void** handle))                        \
  X(ncclCommDeregister, Result, (Comm*, void* handle))                                            \
  X(ncclRedOpCreatePreMulSum, Result, (RedOp*, void* scalar, DataType, Residence, Comm*))         \
  X(ncclRedOpDestroy, Result, (RedOp, Comm*))                                                     \
  X(ncclGroupStart, Result, ())                                                                   \
  X(ncclGroupEnd, Result, ())                                                                     \
  X(ncclAllReduce, Result, (const void*, void*, size_t count, DataType, RedOp, Comm*, void*))     \
  X(ncclReduce, Result,                                                                           \
    (const void*, void*, size_t count, DataType, RedOp, int root, Comm*, void*))                  \
  X(ncclReduceScatter, Result, (const void*, void*, size_t count, DataType, RedOp, Comm*, void*)) \
  X(ncclAllGather, Result, (const void*, void*, size_t count, DataType, Comm*, void*))            \
  X(ncclBroadcast, Result, (const void*, void*, size_t count, DataType, int root, Comm*, void*))  \
  X(ncclSend, Result, (const void*, size_t count, DataType, int peer, Comm*, void* stream))       \
  X(ncclRecv, Result, (void*, size_t count, DataType, int peer, Comm*, void* stream))

// Newer functions; null if the library lacks them.
#define LS_NCCL_NEWER_FUNCTIONS(X)                                                         \
  X(ncclCommShrink, Result, (Comm*, int* excluded, int count, Comm**, Config*, int flags)) \
  X(ncclCommInitRankScalable, Result,                                                      \
    (Comm**, int size, int rank, int count, UniqueId* ids, Config*))                       \
  X(ncclMemAlloc, Result, (void** data, size_t bytes))                                     \
  X(ncclMemFree, Result, (void* data))                                                     \
  X(ncclCommWindowRegister, Result, (Comm*, void*, size_t bytes, Window**, int flags))     \
  X(ncclCommWindowDeregister, Result, (Comm*, Window*))

/// A library's functions, under NCCL's own names.
struct Functions {
#define LS_NCCL_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  LS_NCCL_FUNCTIONS(LS_NCCL_MEMBER)
  LS_NCCL_NEWER_FUNCTIONS(LS_NCCL_MEMBER)
#undef LS_NCCL_MEMBER
};

}  // namespace lockstep::dist::nccl
