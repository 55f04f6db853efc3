#pragma once

#include <string>

namespace google::protobuf {
class Descriptor;
}

namespace lockstep::config {

/// An error at a place in a text. Line and column are 0-based, as the protobuf library counts them
/// (a tab advances to the next multiple of 8).
struct Finding {
  int line = 0;
  int column = 0;
  std::string problem;
};

/// Explains to the user why `text` could not be parsed as a message of `type`.
///
/// `parser` is the parser's first error. The text is compared with the schema again; returns the
/// first unknown field, field set twice, second member of a oneof, value of the wrong type or
/// unclosed brace, with the place where it begins, or `parser` if there is none before it.
Finding diagnose(const std::string& text, const google::protobuf::Descriptor& type, Finding parser);

}  // namespace lockstep::config
