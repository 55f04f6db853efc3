#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Reads a pickle of protocol 2 that contains only JSON types; pairs become arrays. Throws
/// std::runtime_error on anything else. Independent of the writer, so that a mistake passes only if
/// both share it.
class Unpickler {
 public:
  explicit Unpickler(std::string_view bytes) : bytes_(bytes) {}

  nlohmann::json read() {
    expect(take(1) == "\x80" && take(1) == "\x02", "protocol 2");
    while (true) {
      const char opcode = take(1)[0];
      if (opcode == '.') break;
      step(opcode);
    }
    expect(bytes_.empty() && stack_.size() == 1 && marks_.empty(), "one object");
    return stack_[0];
  }

 private:
  static void expect(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(std::string("no pickle: expected ") + what);
  }

  std::string_view take(size_t count) {
    expect(bytes_.size() >= count, "more bytes");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  uint64_t number(size_t count) {
    uint64_t value = 0;
    const std::string_view bytes = take(count);
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    return value;
  }

  std::vector<nlohmann::json> since_mark() {
    expect(!marks_.empty() && marks_.back() >= 1, "a mark");
    std::vector<nlohmann::json> values(stack_.begin() + marks_.back(), stack_.end());
    stack_.resize(static_cast<size_t>(marks_.back()));
    marks_.pop_back();
    return values;
  }

  void long_number() {
    const size_t count = number(1);
    expect(count >= 1 && count <= 9, "a number of 64 bits");
    const std::string_view bytes = bytes_.substr(0, count);
    const bool negative = static_cast<uint8_t>(bytes.back()) >= 128;
    uint64_t value = number(std::min<size_t>(count, 8));
    if (count == 9) expect(number(1) == 0, "a number of 64 bits");
    if (!negative) {
      stack_.push_back(value);
      return;
    }
    for (size_t i = count; i < 8; ++i) value |= uint64_t{0xff} << (8 * i);
    stack_.push_back(static_cast<int64_t>(value));
  }

  void step(char opcode) {
    switch (opcode) {
      case 'N':
        return stack_.push_back(nullptr);
      case '\x88':
        return stack_.push_back(true);
      case '\x89':
        return stack_.push_back(false);
      case 'K':
        return stack_.push_back(number(1));
      case 'M':
        return stack_.push_back(number(2));
      case 'J':
        return stack_.push_back(static_cast<int32_t>(number(4)));
      case '\x8a':
        return long_number();
      case 'G': {
        uint64_t bits = 0;
        for (const char byte : take(8)) bits = bits << 8 | static_cast<uint8_t>(byte);
        return stack_.push_back(std::bit_cast<double>(bits));
      }
      case 'X':
        return stack_.push_back(std::string(take(number(4))));
      case ']':
        return stack_.push_back(nlohmann::json::array());
      case '}':
        return stack_.push_back(nlohmann::json::object());
      case '(':
        return marks_.push_back(static_cast<std::ptrdiff_t>(stack_.size()));
      case 'e': {
        const auto values = since_mark();
        expect(stack_.back().is_array() && !values.empty(), "a list");
        for (const auto& value : values) stack_.back().push_back(value);
        return;
      }
      case 'u': {
        const auto values = since_mark();
        expect(stack_.back().is_object() && values.size() % 2 == 0, "a dictionary");
        for (size_t i = 0; i < values.size(); i += 2) {
          stack_.back()[values[i].get<std::string>()] = values[i + 1];
        }
        return;
      }
      case '\x86': {
        expect(stack_.size() >= 2, "two values");
        const nlohmann::json pair = {stack_.end()[-2], stack_.end()[-1]};
        stack_.resize(stack_.size() - 2);
        return stack_.push_back(pair);
      }
      case 'q':
        memo_[number(1)] = stack_.back();
        return;
      case 'r':
        memo_[number(4)] = stack_.back();
        return;
      case 'h':
        return stack_.push_back(memo_.at(number(1)));
      case 'j':
        return stack_.push_back(memo_.at(number(4)));
      default:
        expect(false, "a known opcode");
    }
  }

  std::string_view bytes_;
  std::vector<nlohmann::json> stack_;
  std::vector<std::ptrdiff_t> marks_;
  std::map<uint64_t, nlohmann::json> memo_;
};

}  // namespace lockstep
