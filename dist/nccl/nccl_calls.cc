#include "dist/nccl/nccl_calls.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace lockstep::dist {
namespace {

using nccl::DataType;
using nccl::RedOp;
using nccl::Result;

DataType data_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return DataType::kUint8;
    case DType::kI8:
      return DataType::kInt8;
    case DType::kI32:
      return DataType::kInt32;
    case DType::kI64:
      return DataType::kInt64;
    case DType::kF16:
      return DataType::kFloat16;
    case DType::kBF16:
      return DataType::kBFloat16;
    case DType::kF32:
      return DataType::kFloat32;
    case DType::kF64:
      return DataType::kFloat64;
    case DType::kI16:
      break;
  }
  throw InternalError("[internal] NCCL has no int16 to reduce. Please report this.");
}

const std::byte* at(const void* data, size_t bytes) {
  return static_cast<const std::byte*>(data) + bytes;
}
std::byte* at(void* data, size_t bytes) { return static_cast<std::byte*>(data) + bytes; }

/// Makes the calls of one operation.
class Calls {
 public:
  Calls(const NcclPlace& place, const Operation& operation)
      : place_(place), functions_(place.library.functions), op_(operation) {}

  void make() {
    switch (op_.kind) {
      case OpKind::kAllReduce:
      case OpKind::kReduceScatter:
      case OpKind::kReduce:
        return reduce();
      case OpKind::kAllGather:
        return all_gather();
      case OpKind::kBroadcast:
        return chunks(bytes(op_.count), 1, [&](size_t first, size_t count) {
          broadcast(at(op_.input, first), at(op_.output, first), count, op_.root);
        });
      case OpKind::kAllToAll:
        return all_to_all();
      case OpKind::kSend:
        return send(op_.input, bytes(op_.count), op_.root);
      case OpKind::kReceive:
        return receive(op_.output, bytes(op_.count), op_.root);
      case OpKind::kBarrier:
        break;
    }
    throw InternalError("[internal] a barrier is no call of NCCL. Please report this.");
  }

 private:
  size_t bytes(int64_t count) const { return static_cast<size_t>(count) * size_of(op_.dtype); }

  void check(Result result, const char* function) const {
    if (result != Result::kSuccess && result != Result::kInProgress) {
      std::rethrow_exception(nccl_error(place_.library, result, function, place_.comm));
    }
  }

  /// Calls `call(first, count)` for pieces of at most `chunk_bytes`; elements have `width` bytes.
  template <class F>
  void chunks(size_t count, size_t width, F call) const {
    const size_t most = std::max<size_t>(place_.chunk_bytes / width, 1);
    for (size_t first = 0; first < count; first += most) call(first, std::min(most, count - first));
  }

  void broadcast(const void* from, void* to, size_t count, int root) const {
    check(functions_.ncclBroadcast(from, to, count, DataType::kUint8, root, place_.comm,
                                   place_.stream),
          "ncclBroadcast");
  }

  void all_gather() const {
    const size_t part = bytes(op_.count);
    if (part == 0) return;
    if (part <= place_.chunk_bytes) {
      return check(functions_.ncclAllGather(op_.input, op_.output, part, DataType::kUint8,
                                            place_.comm, place_.stream),
                   "ncclAllGather");
    }
    for (int root = 0; root < place_.size; ++root) {
      void* const whole = at(op_.output, static_cast<size_t>(root) * part);
      chunks(part, 1, [&](size_t first, size_t count) {
        // NCCL reads the source on the root only.
        const void* const from = root == place_.rank ? at(op_.input, first) : at(whole, first);
        broadcast(from, at(whole, first), count, root);
      });
    }
  }

  void send(const void* from, size_t size, int to) const {
    chunks(size, 1, [&](size_t first, size_t count) {
      check(functions_.ncclSend(at(from, first), count, DataType::kUint8, to, place_.comm,
                                place_.stream),
            "ncclSend");
    });
  }
  void receive(void* to, size_t size, int from) const {
    chunks(size, 1, [&](size_t first, size_t count) {
      check(functions_.ncclRecv(at(to, first), count, DataType::kUint8, from, place_.comm,
                                place_.stream),
            "ncclRecv");
    });
  }

  void all_to_all() const {
    size_t sent = 0;
    size_t received = 0;
    for (int peer = 0; peer < place_.size; ++peer) {
      const size_t out = bytes(op_.send_counts[static_cast<size_t>(peer)]);
      const size_t in = bytes(op_.receive_counts[static_cast<size_t>(peer)]);
      send(at(op_.input, sent), out, peer);
      receive(at(op_.output, received), in, peer);
      sent += out;
      received += in;
    }
  }

  void reduce() const {
    if (op_.count == 0) return;
    const DataType type = data_type(op_.dtype);
    const RedOp red_op = make_op(type);
    if (op_.kind == OpKind::kReduceScatter) {
      reduce_scatter(type, red_op);
    } else {
      chunks(static_cast<size_t>(op_.count), size_of(op_.dtype), [&](size_t first, size_t count) {
        const size_t skip = first * size_of(op_.dtype);
        if (op_.kind == OpKind::kReduce) {
          return reduce_to(op_.root, at(op_.input, skip), at(op_.output, skip), count, type,
                           red_op);
        }
        check(functions_.ncclAllReduce(at(op_.input, skip), at(op_.output, skip), count, type,
                                       red_op, place_.comm, place_.stream),
              "ncclAllReduce");
      });
    }
    if (op_.reduction.op == ReduceOp::kPremultipliedSum) {
      check(functions_.ncclRedOpDestroy(red_op, place_.comm), "ncclRedOpDestroy");
    }
  }

  void reduce_scatter(DataType type, RedOp red_op) const {
    const auto part = static_cast<size_t>(op_.count);
    if (bytes(op_.count) <= place_.chunk_bytes) {
      return check(functions_.ncclReduceScatter(op_.input, op_.output, part, type, red_op,
                                                place_.comm, place_.stream),
                   "ncclReduceScatter");
    }
    for (int root = 0; root < place_.size; ++root) {
      const void* const whole = at(op_.input, static_cast<size_t>(root) * bytes(op_.count));
      chunks(part, size_of(op_.dtype), [&](size_t first, size_t count) {
        const size_t skip = first * size_of(op_.dtype);
        // NCCL writes the result on the root only.
        reduce_to(root, at(whole, skip), at(op_.output, skip), count, type, red_op);
      });
    }
  }

  void reduce_to(int root, const void* from, void* to, size_t count, DataType type,
                 RedOp red_op) const {
    check(functions_.ncclReduce(from, to, count, type, red_op, root, place_.comm, place_.stream),
          "ncclReduce");
  }

  RedOp make_op(DataType type) const {
    switch (op_.reduction.op) {
      case ReduceOp::kSum:
        return RedOp::kSum;
      case ReduceOp::kProduct:
        return RedOp::kProduct;
      case ReduceOp::kMin:
        return RedOp::kMin;
      case ReduceOp::kMax:
        return RedOp::kMax;
      case ReduceOp::kPremultipliedSum:
        break;
    }
    // NCCL reads the factor, in the dtype of the elements, before it returns.
    alignas(double) std::byte factor[sizeof(double)] = {};
    const auto store = [&](auto value) { std::memcpy(factor, &value, sizeof value); };
    const double wanted = op_.reduction.factor;
    if (op_.dtype == DType::kF64) store(wanted);
    if (op_.dtype == DType::kF32) store(static_cast<float>(wanted));
    if (op_.dtype == DType::kF16) store(Half(static_cast<float>(wanted)));
    if (op_.dtype == DType::kBF16) store(BFloat16(static_cast<float>(wanted)));
    RedOp made = RedOp::kSum;
    check(functions_.ncclRedOpCreatePreMulSum(&made, factor, type, nccl::Residence::kHostImmediate,
                                              place_.comm),
          "ncclRedOpCreatePreMulSum");
    return made;
  }

  const NcclPlace& place_;
  const nccl::Functions& functions_;
  const Operation& op_;
};

}  // namespace

bool nccl_reduces(DType dtype) { return dtype != DType::kI16; }

void make_nccl_calls(const NcclPlace& place, const Operation& operation) {
  Calls(place, operation).make();
}

}  // namespace lockstep::dist
