#pragma once

#include <string>

namespace google::protobuf {
class Descriptor;
}

namespace lockstep::config {

/// A place in a text, 0-based as the protobuf library counts (a tab reaches the next multiple of
/// 8), and what is wrong there.
struct Finding {
  int line = 0;
  int column = 0;
  std::string problem;
};

/// Explains why `text` could not be parsed as a message of `type`, in the user's words.
///
/// `parser` is the parser's own first error. The text is read again beside the schema, and the
/// first unknown field, field set twice, second member of a oneof, value of the wrong type or
/// unclosed brace is returned with the place where it begins; `parser` itself if none stands before
/// it.
Finding diagnose(const std::string& text, const google::protobuf::Descriptor& type, Finding parser);

}  // namespace lockstep::config
