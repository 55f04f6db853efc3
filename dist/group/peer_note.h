#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dist/collectives/operation.h"

namespace lockstep::dist {

/// "I wait for you in this operation."
struct Question {
  Signature signature;
};

/// How far a rank has come with the operation that it was asked about.
struct Answer {
  enum class Where : uint8_t { kNotYet, kThere, kDone };
  uint64_t group = 0;
  uint64_t sequence = 0;
  Where where = Where::kNotYet;
  /// Operations of the group that the rank has come to.
  uint64_t called = 0;
  /// There: the ranks of the group that it waits for itself, by bit.
  uint64_t awaited = 0;
};

// As texts for JobControl::post.
std::string encode(const Question& question);
std::string encode(const Answer& answer);
/// Nothing for a text that is no such note.
std::optional<Question> decode_question(const std::string& text);
std::optional<Answer> decode_answer(const std::string& text);

}  // namespace lockstep::dist
