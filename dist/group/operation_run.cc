#include "dist/group/operation_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/hash_words.h"

namespace lockstep::dist {
namespace {

constexpr int kLaneBits = 2;
static_assert(kLanes <= 1 << kLaneBits);
// Layout of a tag above the lane. Collectives: hash, sequence number, group.
constexpr int kHashBits = 12;
constexpr int kNumberBits = 8;
// Messages: hash, the user's tag, group.
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

bool is_set(uint64_t bits, int rank) { return rank < 64 && (bits >> rank & 1) != 0; }

/// A process that does not answer within this time is stopped or heavily overloaded.
constexpr auto kAnswerComes = std::chrono::milliseconds(500);

bool is_silent(const OperationRun& run, int rank, OperationRun::Clock::time_point now) {
  const auto asked = run.asked.find(rank);
  return asked != run.asked.end() && now - asked->second >= kAnswerComes;
}

/// Whether the rank has called the operation, by its last answer.
bool has_come(const OperationRun& run, int rank, OperationRun::Clock::time_point now) {
  const auto answer = run.answers.find(rank);
  return answer != run.answers.end() && answer->second.where != Answer::Where::kNotYet &&
         !is_silent(run, rank, now);
}

double seconds(OperationRun::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

OperationRun::Clock::time_point OperationRun::silence_ends() const {
  Clock::time_point ends = Clock::time_point::max();
  if (asked.empty()) return ends;
  const uint64_t waited_for = awaited();
  for (const auto& [rank, time] : asked) {
    if (is_set(waited_for, rank)) ends = std::min(ends, time + limits.silence);
  }
  return ends;
}

uint64_t OperationRun::concerned() const {
  const uint64_t own = group->rank < 64 ? uint64_t{1} << group->rank : 0;
  uint64_t found = awaited();
  for (uint64_t unseen = found; unseen != 0;) {
    const int rank = std::countr_zero(unseen);
    unseen &= unseen - 1;
    const auto answer = answers.find(rank);
    if (answer == answers.end() || answer->second.where != Answer::Where::kThere) continue;
    const uint64_t more = answer->second.awaited & ~found & ~own;
    found |= more;
    unseen |= more;
  }
  return found;
}

OperationRun::Clock::time_point OperationRun::next_look() const {
  return std::min({next_question, next_notice, deadline(), silence_ends()});
}

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
  for (uint64_t left = run.concerned(); left != 0; left &= left - 1) {
    const int rank = std::countr_zero(left);
    const auto answer = run.answers.find(rank);
    text += fmt::format(
        "; rank {} {}", rank,
        answer == run.answers.end() ? "does not answer" : place(answer->second, *run.group));
  }
  return text.empty() ? "; no rank is waited for" : text;
}

bool awaits_silent(const OperationRun& run, OperationRun::Clock::time_point now) {
  const uint64_t concerned = run.concerned();
  return std::ranges::any_of(run.asked, [&](const auto& each) {
    return is_set(concerned, each.first) && is_silent(run, each.first, now);
  });
}

bool reports_delay(const OperationRun& run, OperationRun::Clock::time_point now) {
  const uint64_t concerned = run.concerned();
  for (int rank = 0; rank < run.group->rank; ++rank) {
    const auto answer = run.answers.find(rank);
    const bool done = answer != run.answers.end() && answer->second.where == Answer::Where::kDone;
    // A rank that nobody waits for has called the operation and waits like this one.
    if (!done && (!is_set(concerned, rank) || has_come(run, rank, now))) return false;
  }
  return true;
}

std::string describe_delay(const OperationRun& run, OperationRun::Clock::time_point now) {
  std::string absent;
  std::string slow;
  const uint64_t awaited = run.awaited();
  for (uint64_t left = run.concerned(); left != 0; left &= left - 1) {
    const int rank = std::countr_zero(left);
    const auto answer = run.answers.find(rank);
    if (has_come(run, rank, now)) {
      if (is_set(awaited, rank)) slow += fmt::format("{}{}", slow.empty() ? "" : ", ", rank);
    } else if (is_silent(run, rank, now)) {
      absent += fmt::format("; rank {} has not answered for {:.1f} s", rank,
                            seconds(now - run.asked.at(rank)));
    } else {
      absent += fmt::format("; rank {} {}", rank,
                            answer == run.answers.end() ? "has not told where it is"
                                                        : place(answer->second, *run.group));
    }
  }
  // Slow transfers are reported only if no rank is absent, as absent ranks hold them up too.
  if (absent.empty()) {
    absent = fmt::format("; all have come, the data to and from rank {} are slow", slow);
  }
  return fmt::format("{} takes {:.1f} s so far{}", to_string(run.signature, *run.group),
                     seconds(now - run.begun), absent);
}

std::string describe_end(const OperationRun& run, OperationRun::Clock::time_point now) {
  return fmt::format("{} has ended after {:.1f} s", to_string(run.signature, *run.group),
                     seconds(now - run.begun));
}

}  // namespace lockstep::dist
