#include "compile/graph/text_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "core/base/check.h"

namespace lockstep::compiler {

namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_.:-").find(c) != std::string_view::npos;
}

}  // namespace

void TextReader::skip_space() {
  while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
}

void TextReader::fail(std::string_view expected) const {
  const auto line = 1 + std::ranges::count(text_.substr(0, at_), '\n');
  const std::string_view rest =
      text_.substr(at_, std::min(text_.find('\n', at_) - at_, size_t{40}));
  throw Error(fmt::format("[parse_graph] line {}: expected {}, got \"{}\".", line, expected, rest));
}

bool TextReader::accept(std::string_view token) {
  skip_space();
  if (!text_.substr(at_).starts_with(token)) return false;
  const size_t end = at_ + token.size();
  const bool is_letter = std::isalpha(static_cast<unsigned char>(token.back())) != 0;
  if (is_letter && end < text_.size() && is_word(text_[end])) return false;
  at_ = end;
  return true;
}

void TextReader::expect(std::string_view token) {
  if (!accept(token)) fail(fmt::format("\"{}\"", token));
}

std::string TextReader::word() {
  skip_space();
  const size_t start = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  if (at_ == start) fail("a word");
  return std::string(text_.substr(start, at_ - start));
}

std::string_view TextReader::number() {
  skip_space();
  const size_t start = at_;
  while (at_ < text_.size() &&
         (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
          std::string_view(".+-").find(text_[at_]) != std::string_view::npos)) {
    ++at_;
  }
  return text_.substr(start, at_ - start);
}

int64_t TextReader::integer() {
  const size_t start = (skip_space(), at_);
  const std::string_view digits = number();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    at_ = start;
    fail("an integer");
  }
  return value;
}

double TextReader::real() {
  const size_t start = (skip_space(), at_);
  const std::string_view digits = number();
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    at_ = start;
    fail("a number");
  }
  return value;
}

bool TextReader::boolean() {
  if (accept("True")) return true;
  if (accept("False")) return false;
  fail("True or False");
}

Scalar TextReader::scalar() {
  if (accept("True")) return true;
  if (accept("False")) return false;
  const size_t start = (skip_space(), at_);
  const bool is_integer = number().find_first_of(".en") == std::string_view::npos;
  at_ = start;
  return is_integer ? Scalar(integer()) : Scalar(real());
}

std::string TextReader::string() {
  expect("\"");
  std::string out;
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] == '\\') ++at_;
    if (at_ < text_.size()) out += text_[at_++];
  }
  expect("\"");
  return out;
}

DType TextReader::dtype() {
  const size_t start = (skip_space(), at_);
  if (const std::optional<DType> dtype = parse_dtype(word())) return *dtype;
  at_ = start;
  fail("a dtype");
}

void TextReader::end() {
  skip_space();
  if (at_ != text_.size()) fail("the end");
}

}  // namespace lockstep::compiler
