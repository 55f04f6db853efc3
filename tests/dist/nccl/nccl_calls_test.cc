// The exact NCCL calls of each operation, in a library that only records them.

#include "dist/nccl/nccl_calls.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/dtype.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

using nccl::DataType;
using nccl::RedOp;
using nccl::Result;

std::array<std::byte, 1024> g_native_in, g_native_out;

/// A call, with places as distances from the beginnings of `g_native_in` and `g_native_out`.
struct NativeCall {
  std::string name;
  ptrdiff_t in = -1;
  ptrdiff_t out = -1;
  size_t count = 0;
  DataType type = DataType::kUint8;
  RedOp op = RedOp::kSum;
  int peer = -1;  ///< or root

  friend bool operator==(const NativeCall&, const NativeCall&) = default;
};

std::ostream& operator<<(std::ostream& stream, const NativeCall& call) {
  return stream << call.name << " in " << call.in << " out " << call.out << " count " << call.count
                << " type " << static_cast<int>(call.type) << " op " << static_cast<int>(call.op)
                << " peer " << call.peer;
}

std::vector<NativeCall> g_native_calls;
std::string g_native_fails;  ///< function that fails
Result g_native_usual = Result::kInProgress;
double g_native_factor = 0;

ptrdiff_t distance(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  const bool is_in = at >= g_native_in.data() && at < g_native_in.data() + g_native_in.size();
  return at - (is_in ? g_native_in.data() : g_native_out.data());
}

Result note_native(NativeCall call) {
  const bool fails = call.name == g_native_fails;
  g_native_calls.push_back(std::move(call));
  return fails ? Result::kInvalidUsage : g_native_usual;
}

NcclLibrary recording_library() {
  NcclLibrary result;
  result.version = 22809;
  nccl::Functions& f = result.functions;
  f.ncclGetErrorString = [](Result) { return "wrong use"; };
  f.ncclGetLastError = [](nccl::Comm*) { return ""; };
  f.ncclAllReduce = [](const void* in, void* out, size_t count, DataType type, RedOp op,
                       nccl::Comm*, void*) {
    return note_native({"ncclAllReduce", distance(in), distance(out), count, type, op});
  };
  f.ncclReduce = [](const void* in, void* out, size_t count, DataType type, RedOp op, int root,
                    nccl::Comm*, void*) {
    return note_native({"ncclReduce", distance(in), distance(out), count, type, op, root});
  };
  f.ncclReduceScatter = [](const void* in, void* out, size_t count, DataType type, RedOp op,
                           nccl::Comm*, void*) {
    return note_native({"ncclReduceScatter", distance(in), distance(out), count, type, op});
  };
  f.ncclAllGather = [](const void* in, void* out, size_t count, DataType type, nccl::Comm*, void*) {
    return note_native({"ncclAllGather", distance(in), distance(out), count, type});
  };
  f.ncclBroadcast = [](const void* in, void* out, size_t count, DataType type, int root,
                       nccl::Comm*, void*) {
    return note_native(
        {"ncclBroadcast", distance(in), distance(out), count, type, RedOp::kSum, root});
  };
  f.ncclSend = [](const void* in, size_t count, DataType type, int peer, nccl::Comm*, void*) {
    return note_native({"ncclSend", distance(in), -1, count, type, RedOp::kSum, peer});
  };
  f.ncclRecv = [](void* out, size_t count, DataType type, int peer, nccl::Comm*, void*) {
    return note_native({"ncclRecv", -1, distance(out), count, type, RedOp::kSum, peer});
  };
  f.ncclRedOpCreatePreMulSum = [](RedOp* op, void* scalar, DataType type, nccl::Residence where,
                                  nccl::Comm*) {
    EXPECT_EQ(where, nccl::Residence::kHostImmediate);
    const auto read = [&](auto value) {
      std::memcpy(&value, scalar, sizeof value);
      return static_cast<double>(static_cast<float>(value));
    };
    if (type == DataType::kFloat64) std::memcpy(&g_native_factor, scalar, sizeof g_native_factor);
    if (type == DataType::kFloat32) g_native_factor = read(0.0F);
    if (type == DataType::kFloat16) g_native_factor = read(Half(0.0F));
    if (type == DataType::kBFloat16) g_native_factor = read(BFloat16(0.0F));
    *op = static_cast<RedOp>(9);
    return note_native({"ncclRedOpCreatePreMulSum", -1, -1, 0, type});
  };
  f.ncclRedOpDestroy = [](RedOp op, nccl::Comm*) {
    return note_native({"ncclRedOpDestroy", -1, -1, 0, DataType::kUint8, op});
  };
  return result;
}

/// NativeCalls of an operation from `g_native_in` to `g_native_out` on rank 1 of 3.
std::vector<NativeCall> native_calls(Operation operation, size_t chunk_bytes = 1 << 20) {
  const NcclLibrary functions = recording_library();
  operation.input = g_native_in.data();
  operation.output = g_native_out.data();
  g_native_calls.clear();
  make_nccl_calls({.library = functions, .rank = 1, .size = 3, .chunk_bytes = chunk_bytes},
                  operation);
  return g_native_calls;
}

using NativeCalls = std::vector<NativeCall>;

Operation f32_operation(OpKind kind, int64_t count, int root = 0) {
  return {.kind = kind, .dtype = DType::kF32, .root = root, .count = count};
}

TEST(NcclCalls, AreOneForEachCollective) {
  constexpr auto kF32 = DataType::kFloat32;
  EXPECT_EQ(native_calls(f32_operation(OpKind::kAllReduce, 5)),
            (NativeCalls{{"ncclAllReduce", 0, 0, 5, kF32}}));
  EXPECT_EQ(native_calls(f32_operation(OpKind::kReduce, 5, 2)),
            (NativeCalls{{"ncclReduce", 0, 0, 5, kF32, RedOp::kSum, 2}}));
  EXPECT_EQ(native_calls(f32_operation(OpKind::kReduceScatter, 5)),
            (NativeCalls{{"ncclReduceScatter", 0, 0, 5, kF32}}));
  EXPECT_EQ(native_calls(f32_operation(OpKind::kAllGather, 5)),
            (NativeCalls{{"ncclAllGather", 0, 0, 20}}));
  EXPECT_EQ(native_calls(f32_operation(OpKind::kBroadcast, 5, 2)),
            (NativeCalls{{"ncclBroadcast", 0, 0, 20, DataType::kUint8, RedOp::kSum, 2}}));
  EXPECT_EQ(native_calls(f32_operation(OpKind::kSend, 5, 2)),
            (NativeCalls{{"ncclSend", 0, -1, 20, DataType::kUint8, RedOp::kSum, 2}}));
  EXPECT_EQ(native_calls(f32_operation(OpKind::kReceive, 5, 2)),
            (NativeCalls{{"ncclRecv", -1, 0, 20, DataType::kUint8, RedOp::kSum, 2}}));
}

TEST(NcclCalls, OfNothingAreNone) {
  for (const OpKind kind :
       {OpKind::kAllReduce, OpKind::kReduce, OpKind::kReduceScatter, OpKind::kAllGather,
        OpKind::kBroadcast, OpKind::kSend, OpKind::kReceive}) {
    EXPECT_EQ(native_calls(f32_operation(kind, 0)), NativeCalls()) << name(kind);
  }
  expect_error<InternalError>([] { native_calls(f32_operation(OpKind::kBarrier, 0)); },
                              "[internal] a barrier is no call of NCCL. Please report this.");
}

TEST(NcclCalls, OfAllToAllAreThePartsThatAreNotEmptyOneAfterAnother) {
  Operation exchange{.kind = OpKind::kAllToAll, .dtype = DType::kF32};
  exchange.send_counts = {1, 0, 3};
  exchange.receive_counts = {2, 4, 0};
  constexpr auto kBytes = DataType::kUint8;
  EXPECT_EQ(native_calls(exchange), (NativeCalls{{"ncclSend", 0, -1, 4, kBytes, RedOp::kSum, 0},
                                                 {"ncclRecv", -1, 0, 8, kBytes, RedOp::kSum, 0},
                                                 {"ncclRecv", -1, 8, 16, kBytes, RedOp::kSum, 1},
                                                 {"ncclSend", 4, -1, 12, kBytes, RedOp::kSum, 2}}));
}

TEST(NcclCalls, BeyondTheLimitAreSeveralPieces) {
  constexpr auto kF32 = DataType::kFloat32;
  constexpr auto kBytes = DataType::kUint8;
  constexpr auto kSum = RedOp::kSum;
  // Eight bytes are two elements.
  EXPECT_EQ(native_calls(f32_operation(OpKind::kAllReduce, 5), 8),
            (NativeCalls{{"ncclAllReduce", 0, 0, 2, kF32},
                         {"ncclAllReduce", 8, 8, 2, kF32},
                         {"ncclAllReduce", 16, 16, 1, kF32}}));
  EXPECT_EQ(native_calls(f32_operation(OpKind::kReduce, 3, 1), 8),
            (NativeCalls{{"ncclReduce", 0, 0, 2, kF32, kSum, 1},
                         {"ncclReduce", 8, 8, 1, kF32, kSum, 1}}));
  EXPECT_EQ(native_calls(f32_operation(OpKind::kBroadcast, 3, 1), 8),
            (NativeCalls{{"ncclBroadcast", 0, 0, 8, kBytes, kSum, 1},
                         {"ncclBroadcast", 8, 8, 4, kBytes, kSum, 1}}));
  EXPECT_EQ(native_calls(f32_operation(OpKind::kSend, 3, 2), 8),
            (NativeCalls{{"ncclSend", 0, -1, 8, kBytes, kSum, 2},
                         {"ncclSend", 8, -1, 4, kBytes, kSum, 2}}));
  EXPECT_EQ(native_calls(f32_operation(OpKind::kReceive, 3, 2), 8),
            (NativeCalls{{"ncclRecv", -1, 0, 8, kBytes, kSum, 2},
                         {"ncclRecv", -1, 8, 4, kBytes, kSum, 2}}));
  // A limit below one element is one element.
  EXPECT_EQ(native_calls(f32_operation(OpKind::kAllReduce, 2), 1),
            (NativeCalls{{"ncclAllReduce", 0, 0, 1, kF32}, {"ncclAllReduce", 4, 4, 1, kF32}}));
}

TEST(NcclCalls, PartsBeyondTheLimitAreBroadcastOrReducedOneByOne) {
  constexpr auto kF32 = DataType::kFloat32;
  constexpr auto kBytes = DataType::kUint8;
  constexpr auto kSum = RedOp::kSum;
  EXPECT_EQ(native_calls(f32_operation(OpKind::kAllGather, 2), 8),
            (NativeCalls{{"ncclAllGather", 0, 0, 8}}));
  // Rank 1 broadcasts its input; the others' sources are not read here.
  EXPECT_EQ(native_calls(f32_operation(OpKind::kAllGather, 3), 8),
            (NativeCalls{{"ncclBroadcast", 0, 0, 8, kBytes, kSum, 0},
                         {"ncclBroadcast", 8, 8, 4, kBytes, kSum, 0},
                         {"ncclBroadcast", 0, 12, 8, kBytes, kSum, 1},
                         {"ncclBroadcast", 8, 20, 4, kBytes, kSum, 1},
                         {"ncclBroadcast", 24, 24, 8, kBytes, kSum, 2},
                         {"ncclBroadcast", 32, 32, 4, kBytes, kSum, 2}}));
  EXPECT_EQ(native_calls(f32_operation(OpKind::kReduceScatter, 2), 8),
            (NativeCalls{{"ncclReduceScatter", 0, 0, 2, kF32}}));
  EXPECT_EQ(native_calls(f32_operation(OpKind::kReduceScatter, 3), 8),
            (NativeCalls{{"ncclReduce", 0, 0, 2, kF32, kSum, 0},
                         {"ncclReduce", 8, 8, 1, kF32, kSum, 0},
                         {"ncclReduce", 12, 0, 2, kF32, kSum, 1},
                         {"ncclReduce", 20, 8, 1, kF32, kSum, 1},
                         {"ncclReduce", 24, 0, 2, kF32, kSum, 2},
                         {"ncclReduce", 32, 8, 1, kF32, kSum, 2}}));
}

TEST(NcclCalls, ReduceInNcclsTypesAndOperations) {
  const std::vector<std::pair<DType, DataType>> types = {
      {DType::kBool, DataType::kUint8},    {DType::kU8, DataType::kUint8},
      {DType::kI8, DataType::kInt8},       {DType::kI32, DataType::kInt32},
      {DType::kI64, DataType::kInt64},     {DType::kF16, DataType::kFloat16},
      {DType::kBF16, DataType::kBFloat16}, {DType::kF32, DataType::kFloat32},
      {DType::kF64, DataType::kFloat64}};
  for (const auto& [dtype, type] : types) {
    EXPECT_TRUE(nccl_reduces(dtype));
    const Operation operation{.kind = OpKind::kAllReduce, .dtype = dtype, .count = 2};
    EXPECT_EQ(native_calls(operation), (NativeCalls{{"ncclAllReduce", 0, 0, 2, type}}))
        << name(dtype);
  }
  EXPECT_FALSE(nccl_reduces(DType::kI16));
  expect_error<InternalError>(
      [] { native_calls({.kind = OpKind::kAllReduce, .dtype = DType::kI16, .count = 1}); },
      "[internal] NCCL has no int16 to reduce. Please report this.");
  const std::vector<std::pair<ReduceOp, RedOp>> ops = {{ReduceOp::kSum, RedOp::kSum},
                                                       {ReduceOp::kProduct, RedOp::kProduct},
                                                       {ReduceOp::kMin, RedOp::kMin},
                                                       {ReduceOp::kMax, RedOp::kMax}};
  for (const auto& [op, native] : ops) {
    Operation operation = f32_operation(OpKind::kReduceScatter, 2);
    operation.reduction.op = op;
    EXPECT_EQ(native_calls(operation),
              (NativeCalls{{"ncclReduceScatter", 0, 0, 2, DataType::kFloat32, native}}));
  }
}

TEST(NcclCalls, APremultipliedSumIsAnOperationWithItsFactorWhileItIsUsed) {
  const std::vector<std::pair<DType, DataType>> types = {{DType::kF16, DataType::kFloat16},
                                                         {DType::kBF16, DataType::kBFloat16},
                                                         {DType::kF32, DataType::kFloat32},
                                                         {DType::kF64, DataType::kFloat64}};
  for (const auto& [dtype, type] : types) {
    const Operation operation{.kind = OpKind::kAllReduce,
                              .dtype = dtype,
                              .reduction = {ReduceOp::kPremultipliedSum, 0.375},
                              .count = 2};
    const auto made = static_cast<RedOp>(9);
    EXPECT_EQ(native_calls(operation),
              (NativeCalls{{"ncclRedOpCreatePreMulSum", -1, -1, 0, type},
                           {"ncclAllReduce", 0, 0, 2, type, made},
                           {"ncclRedOpDestroy", -1, -1, 0, DataType::kUint8, made}}));
    EXPECT_EQ(g_native_factor, 0.375) << name(dtype);
  }
}

TEST(NcclCalls, ACallThatFailsIsNamed) {
  const auto expect_named = [](const char* function, const Operation& operation, size_t chunk) {
    g_native_fails = function;
    expect_error<BackendError>([&] { native_calls(operation, chunk); },
                               std::string(function) + " failed: wrong use");
    g_native_fails.clear();
  };
  Operation premultiplied = f32_operation(OpKind::kAllReduce, 3);
  premultiplied.reduction = {ReduceOp::kPremultipliedSum, 2};
  expect_named("ncclAllReduce", f32_operation(OpKind::kAllReduce, 3), 64);
  expect_named("ncclReduce", f32_operation(OpKind::kReduce, 3), 64);
  expect_named("ncclReduceScatter", f32_operation(OpKind::kReduceScatter, 3), 64);
  expect_named("ncclReduce", f32_operation(OpKind::kReduceScatter, 3), 8);
  expect_named("ncclAllGather", f32_operation(OpKind::kAllGather, 3), 64);
  expect_named("ncclBroadcast", f32_operation(OpKind::kAllGather, 3), 8);
  expect_named("ncclBroadcast", f32_operation(OpKind::kBroadcast, 3), 64);
  expect_named("ncclSend", f32_operation(OpKind::kSend, 3), 64);
  expect_named("ncclRecv", f32_operation(OpKind::kReceive, 3), 64);
  expect_named("ncclRedOpCreatePreMulSum", premultiplied, 64);
  expect_named("ncclRedOpDestroy", premultiplied, 64);
  g_native_usual = Result::kSuccess;
  EXPECT_EQ(native_calls(f32_operation(OpKind::kAllReduce, 3)).size(), 1u);
  g_native_usual = Result::kInProgress;
}

}  // namespace
}  // namespace lockstep::dist
