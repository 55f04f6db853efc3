#include "dist/collectives/operation.h"

#include <array>
#include <bit>

#include "core/base/check.h"
#include "core/base/hash_words.h"

namespace lockstep::dist {

namespace {

bool has_root(OpKind kind) {
  return kind == OpKind::kBroadcast || kind == OpKind::kReduce || kind == OpKind::kSend ||
         kind == OpKind::kReceive;
}

std::string with_commas(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

const char* preposition(OpKind kind) {
  return kind == OpKind::kBroadcast || kind == OpKind::kReceive ? "from" : "to";
}

}  // namespace

const char* name(OpKind kind) {
  switch (kind) {
    case OpKind::kAllReduce:
      return "all_reduce";
    case OpKind::kReduceScatter:
      return "reduce_scatter";
    case OpKind::kAllGather:
      return "all_gather";
    case OpKind::kBroadcast:
      return "broadcast";
    case OpKind::kReduce:
      return "reduce";
    case OpKind::kAllToAll:
      return "all_to_all";
    case OpKind::kBarrier:
      return "barrier";
    case OpKind::kSend:
      return "send";
    case OpKind::kReceive:
      return "recv";
  }
  return "unknown operation";
}

bool is_reduction(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter || kind == OpKind::kReduce;
}

Signature signature_of(const Operation& operation, uint64_t group, uint64_t sequence) {
  Signature signature;
  signature.group = group;
  signature.sequence = sequence;
  signature.kind = operation.kind;
  // Leave fields that a kind does not use at their defaults, so that they compare equal.
  if (operation.kind != OpKind::kBarrier) {
    signature.dtype = operation.dtype;
    if (operation.kind != OpKind::kAllToAll) signature.count = operation.count;
  }
  if (is_reduction(operation.kind)) {
    signature.reduction.op = operation.reduction.op;
    signature.reduction.leaves = operation.reduction.leaves;
    signature.deal = operation.deal.identity();
    if (operation.reduction.op == ReduceOp::kPremultipliedSum) {
      signature.reduction.factor = operation.reduction.factor;
    }
  }
  if (has_root(operation.kind)) signature.root = operation.root;
  return signature;
}

uint64_t hash(const Signature& signature) {
  const uint64_t small = static_cast<uint64_t>(signature.kind) |
                         static_cast<uint64_t>(signature.dtype) << 8 |
                         static_cast<uint64_t>(signature.reduction.op) << 16 |
                         static_cast<uint64_t>(static_cast<uint32_t>(signature.root)) << 32;
  // The identity of an uneven deal is of its leaves, too.
  const uint64_t leaves =
      signature.deal != 0 ? signature.deal : static_cast<uint64_t>(signature.reduction.leaves);
  return hash_words(std::array<uint64_t, 6>{
      signature.group, signature.sequence, small, static_cast<uint64_t>(signature.count),
      std::bit_cast<uint64_t>(signature.reduction.factor), leaves});
}

std::string to_string(const Signature& signature) {
  std::string text = fmt::format("{} #{}", name(signature.kind), signature.sequence);
  if (signature.kind == OpKind::kBarrier) return text;
  if (signature.kind == OpKind::kAllToAll) {
    text += fmt::format(" of {}", name(signature.dtype));
  } else {
    text += fmt::format(" of {} {}", with_commas(signature.count), name(signature.dtype));
  }
  if (has_root(signature.kind)) {
    text += fmt::format(" {} rank {}", preposition(signature.kind), signature.root);
  }
  if (is_reduction(signature.kind)) text += ", " + to_string(signature.reduction);
  if (signature.deal != 0) text += fmt::format(" in deal {:016x}", signature.deal);
  return text;
}

}  // namespace lockstep::dist
