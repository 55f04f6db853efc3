#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/files/gzip.h"
#include "data/json_lines.h"

namespace lockstep::train {

/// A stretch of an example's text.
struct ExamplePart {
  std::string text;
  bool counted = false;  ///< its tokens count in the loss
  bool special = false;  ///< special tokens that it spells are those tokens
  friend bool operator==(const ExamplePart&, const ExamplePart&) = default;
};

/// How the conversation of a line becomes text: each message is `begin`, its content and `end`. In
/// both, "{role}" stands for the message's role. The defaults are ChatML.
struct ChatForm {
  std::string field = "messages";  ///< member with an array of {"role": ..., "content": ...}
  std::string begin = "<|im_start|>{role}\n";
  std::string end = "<|im_end|>\n";
  std::string trained_role = "assistant";  ///< content and `end` of its messages count
};

/// How examples are read from files of JSON lines.
struct ExampleForm {
  std::string prompt = "prompt";          ///< member with the text that is only context
  std::string completion = "completion";  ///< member with the text that counts
  bool special = true;                    ///< ExamplePart::special of both
  std::optional<ChatForm> chat = {};      ///< if set, lines have conversations instead
  bool skip_damaged_lines = false;        ///< and count them; false: the first one is an error
};

/// Reads examples to fine-tune on: each line of a file is a JSON object with a prompt and its
/// completion, or with a conversation. Blank lines are passed over.
class ExampleReader {
 public:
  /// Opens `path`. Throws DataError if it is not named as JSON lines (is_json_lines) or cannot be
  /// read.
  ExampleReader(const std::filesystem::path& path, ExampleForm form);
  /// Reads the uncompressed lines from `source`; `file` names it in errors.
  ExampleReader(ByteSource source, std::string file, ExampleForm form);

  /// Replaces `parts` by those of the next example, at least one of which is counted and has text;
  /// returns false at the end. A prompt may be empty. Throws DataError naming file and line for a
  /// line that is not UTF-8, not a JSON object, lacks a member, or has nothing to learn: an empty
  /// completion, or no message of the trained role with a content. Such lines may be skipped.
  bool next(std::vector<ExamplePart>& parts);
  /// Number of the line that `next` read last, from 1.
  int64_t line() const { return lines_.line(); }
  /// Number of lines that were skipped so far, and what `next` would have said of the first.
  int64_t skipped() const { return lines_.skipped(); }
  const std::string& first_skipped() const { return lines_.first_skipped(); }

 private:
  ExampleForm form_;
  DamageableLines lines_;
};

}  // namespace lockstep::train
