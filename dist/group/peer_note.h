#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dist/collectives/operation.h"

namespace lockstep::dist {

/// Sent to a rank that an operation waits for: asks how far it is.
struct Question {
  Signature signature;
};

/// Reply to a Question: how far the rank is with that operation.
struct Answer {
  enum class Where : uint8_t { kNotYet, kThere, kDone };
  uint64_t group = 0;
  uint64_t sequence = 0;
  Where where = Where::kNotYet;
  /// Number of operations of the group that the rank has called.
  uint64_t called = 0;
  /// If kThere: bit mask of the group's ranks that it waits for itself.
  uint64_t awaited = 0;
};

// Encode a note as text for JobControl::post.
std::string encode(const Question& question);
std::string encode(const Answer& answer);
// Decode a note; return nullopt for other texts.
std::optional<Question> decode_question(const std::string& text);
std::optional<Answer> decode_answer(const std::string& text);

}  // namespace lockstep::dist
