#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// One JSON object on one line, its members in the order they were added:
///   JsonLine().add("step", 3).add("loss", 2.5).text()  ->  {"step":3,"loss":2.5}
/// Numbers round-trip: integers are exact, floating-point values are the shortest decimal that
/// reads back as the same double. JSON has no NaN and no infinities; they become the strings "NaN",
/// "Infinity" and "-Infinity", which Python's float() and JavaScript's Number() take back.
/// Bytes that are not valid UTF-8 become U+FFFD. Duplicate names are the caller's mistake: both are
/// written.
class JsonLine {
 public:
  JsonLine& add(std::string_view name, std::string_view text);
  JsonLine& add(std::string_view name, const char* text) {
    return add(name, std::string_view(text));
  }
  JsonLine& add(std::string_view name, std::same_as<bool> auto value) {
    return add_raw(name, value ? "true" : "false");
  }
  JsonLine& add(std::string_view name, std::floating_point auto value) {
    return add_double(name, static_cast<double>(value));
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) JsonLine& add(std::string_view name, T value) {
    return add_raw(name, std::to_string(value));
  }
  /// A member that is an array of numbers.
  JsonLine& add(std::string_view name, std::span<const double> values);
  /// A member whose value is null.
  JsonLine& add_null(std::string_view name) { return add_raw(name, "null"); }

  /// The object, without a line end.
  std::string text() const { return "{" + members_ + "}"; }

 private:
  JsonLine& add_double(std::string_view name, double value);
  JsonLine& add_raw(std::string_view name, std::string_view json);

  std::string members_;
};

}  // namespace lockstep
