#include "dist/operation_run.h"

#include <fmt/core.h>

#include <array>
#include <bit>

#include "dist/hash_words.h"

namespace lockstep::dist {
namespace {

constexpr int kLaneBits = 2;
static_assert(kLanes <= 1 << kLaneBits);
// Above the lane. Of collectives: hash, number, group.
constexpr int kHashBits = 12;
constexpr int kNumberBits = 8;
// Of messages: hash, the user's tag, group.
constexpr int kMessageHashBits = 4;
constexpr int kUserTagBits = 16;
constexpr int kGroupShift = 22;
constexpr int kGroupBits = 7;
constexpr uint64_t kMessageBit = uint64_t{1} << (kGroupShift + kGroupBits);
static_assert(kLaneBits + kHashBits + kNumberBits == kGroupShift);
static_assert(kLaneBits + kMessageHashBits + kUserTagBits == kGroupShift);
static_assert(kMostGroups == 1 << kGroupBits);

constexpr uint64_t low_bits(uint64_t value, int bits) {
  return value & ((uint64_t{1} << bits) - 1);
}

bool is_message(const Operation& operation) {
  return operation.kind == OpKind::kSend || operation.kind == OpKind::kReceive;
}

std::string place(const Answer& answer, const GroupMembers& group) {
  if (answer.where == Answer::Where::kNotYet) {
    if (answer.called == 0) return "has not called any operation of the group";
    return fmt::format("has not come to it: the last it called is #{}", answer.called - 1);
  }
  if (answer.where == Answer::Where::kDone) return "is done with it";
  std::string ranks;
  for (uint64_t left = answer.awaited; left != 0; left &= left - 1) {
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", std::countr_zero(left));
  }
  if (ranks.empty()) return "has called it";
  return fmt::format("has called it, and waits for rank {} of {}", ranks, group.name);
}

}  // namespace

Signature signature_of(const GroupMembers& group, const NumberedOperation& numbered) {
  const Operation& operation = numbered.operation;
  Signature signature = signature_of(operation, group.id, numbered.sequence);
  if (is_message(operation)) {
    const bool sends = operation.kind == OpKind::kSend;
    const auto from = static_cast<uint64_t>(sends ? group.rank : operation.root);
    const auto to = static_cast<uint64_t>(sends ? operation.root : group.rank);
    signature.group = hash_words(std::array<uint64_t, 4>{group.id, from, to, operation.user_tag});
    signature.kind = OpKind::kSend;
    signature.root = static_cast<int>(to);
  }
  return signature;
}

std::string to_string(const Signature& signature, const GroupMembers& group) {
  return fmt::format("{} in group {}", to_string(signature), group.name);
}

uint64_t first_tag(const GroupMembers& group, const Operation& operation,
                   const Signature& signature) {
  const uint64_t index = static_cast<uint64_t>(group.index) << kGroupShift;
  const uint64_t mark = hash(signature);
  if (is_message(operation)) {
    return kMessageBit | index |
           static_cast<uint64_t>(operation.user_tag) << (kLaneBits + kMessageHashBits) |
           low_bits(mark, kMessageHashBits) << kLaneBits;
  }
  return index | low_bits(signature.sequence, kNumberBits) << (kLaneBits + kHashBits) |
         low_bits(mark, kHashBits) << kLaneBits;
}

bool must_follow(const OperationRun& later, const OperationRun& earlier) {
  return is_message(later.operation) && later.operation.kind == earlier.operation.kind &&
         later.signature.group == earlier.signature.group;
}

std::string describe_wait(const OperationRun& run) {
  std::string text;
  for (uint64_t left = run.awaited(); left != 0; left &= left - 1) {
    const int rank = std::countr_zero(left);
    const auto answer = run.answers.find(rank);
    text += fmt::format(
        "; rank {} {}", rank,
        answer == run.answers.end() ? "does not answer" : place(answer->second, *run.group));
  }
  return text.empty() ? "; no rank is waited for" : text;
}

}  // namespace lockstep::dist
