#include "tests/fuzz/growth.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::fuzz {
namespace {

struct Brackets {
  std::string_view open;
  std::string_view close;
};

constexpr std::array<Brackets, kWaysToGrow - 1> kBrackets = {
    {{"[", "]"}, {"{\"a\":", "}"}, {"(", ")"}}};

std::string repeated(std::string_view text, size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

std::string grown(Input input, uint64_t choice, size_t most) {
  const std::string text = text_of(input);
  if (text.empty() || text.size() >= most) return text;
  const size_t room = most - text.size();
  const size_t way = choice % kWaysToGrow;
  choice /= kWaysToGrow;
  const size_t begin = choice % text.size();
  choice /= text.size();
  const size_t length = 1 + choice % std::min<size_t>(text.size() - begin, 32);
  const std::string stretch = text.substr(begin, length);
  std::string middle;
  if (way == 0) {
    middle = repeated(stretch, 1 + room / length);
  } else {
    const Brackets& brackets = kBrackets[way - 1];
    const size_t times = room / (brackets.open.size() + brackets.close.size());
    middle = repeated(brackets.open, times) + stretch + repeated(brackets.close, times);
  }
  return text.substr(0, begin) + middle + text.substr(begin + length);
}

}  // namespace lockstep::fuzz
