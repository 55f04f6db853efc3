#pragma once

#include <string>
#include <string_view>

#include "core/tensor/scalar.h"

namespace lockstep::compiler {

/// Reads the words, numbers and brackets of a graph's text. White space separates and means nothing
/// else. Every function throws Error with the line where what it looks for is not there.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  /// Goes past `token` if it comes next. A token that ends in a letter is a whole word.
  bool accept(std::string_view token);
  void expect(std::string_view token);
  /// Letters, digits and . _ : - up to another character.
  std::string word();
  int64_t integer();
  /// A number, or inf, -inf, nan.
  double real();
  bool boolean();
  /// A boolean, an integer, or a number with a point or an exponent.
  Scalar scalar();
  /// A text in double quotes.
  std::string string();
  /// "float32"
  DType dtype();
  /// Calls read() for each part of a list in brackets, separated by commas.
  template <class Read>
  void list(Read&& read, char open = '[', char close = ']') {
    expect(std::string_view(&open, 1));
    if (accept(std::string_view(&close, 1))) return;
    do {
      read();
    } while (accept(","));
    expect(std::string_view(&close, 1));
  }
  void end();
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  void skip_space();
  /// The characters of a number, which may be inf or nan.
  std::string_view number();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace lockstep::compiler
