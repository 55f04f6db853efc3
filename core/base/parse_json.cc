#include "core/base/parse_json.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/json_text.h"

namespace lockstep {
namespace {

void check_text(std::string_view text, size_t most) {
  LS_CHECK(text.size() <= most, DataError,
           "[json] the text has {} bytes: expected at most {}. Is this the right file?",
           text.size(), most);
  check_json_nesting(text);
}

/// Builds a document from the events of the parser; members keep the order of the text, and one
/// that stands twice has its last value. Takes linear time, where ordered_json's own parser
/// compares each key with all before it.
class OrderedBuilder final : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  using Json = nlohmann::ordered_json;

  explicit OrderedBuilder(TakeString take) : take_(take) {}

  /// The document; to be called once, after the last event.
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override {
    if (in_object() && take_(names_, value)) return true;
    return add(value);  // a copy: the parser reads the next text into `value`
  }
  bool binary(binary_t& value) override { return add(Json::binary(std::move(value))); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    names_.back() = key;
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception& error) override {
    if (dynamic_cast<const Json::out_of_range*>(&error) == nullptr) throw JsonSyntaxError(byte);
    throw DataError(fmt::format("[json] {}.", error.what()));  // a number beyond double
  }

 private:
  /// An object or array that is not complete.
  struct Open {
    Json* value;
    std::unordered_set<size_t> hashes = {};  ///< of the keys, where they are many
  };

  /// Index of the member `key`; the number of members if there is none.
  static size_t find(Open& object, const std::string& key) {
    constexpr size_t kFew = 16;  // are compared faster than hashed
    const auto& members = object.value->get_ref<Json::object_t&>();
    const std::hash<std::string> hash;
    if (members.size() == kFew) {
      for (const auto& member : members) object.hashes.insert(hash(member.first));
    }
    if (members.size() >= kFew && object.hashes.insert(hash(key)).second) return members.size();
    const auto has_key = [&](const auto& member) { return member.first == key; };
    return static_cast<size_t>(std::ranges::find_if(members, has_key) - members.begin());
  }
  bool in_object() const { return !open_.empty() && open_.back().value->is_object(); }
  /// Puts `value` where the next one belongs. The place is valid until its container gets another.
  Json& put(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (!in_object()) {
      return open_.back().value->get_ref<Json::array_t&>().emplace_back(std::move(value));
    }
    auto& members = open_.back().value->get_ref<Json::object_t&>();
    const size_t place = find(open_.back(), names_.back());
    if (place == members.size()) {
      return members.emplace_back(names_.back(), std::move(value)).second;
    }
    return members.data()[place].second = std::move(value);
  }
  bool add(Json value) {
    put(std::move(value));
    return true;
  }
  bool open(Json value) {
    open_.push_back({&put(std::move(value))});
    names_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    names_.pop_back();
    return true;
  }

  Json root_;
  TakeString take_;
  std::vector<Open> open_;          ///< from the outermost on
  std::vector<std::string> names_;  ///< for each, of the member that is read; empty in an array
};

}  // namespace

JsonSyntaxError::JsonSyntaxError(size_t byte)
    : DataError(fmt::format("[json] not valid JSON from byte {} on. Is the file whole?", byte)),
      byte_(byte) {}

nlohmann::json parse_json(std::string_view text, size_t most) {
  check_text(text, most);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw JsonSyntaxError(error.byte);
  } catch (const nlohmann::json::out_of_range& error) {  // a number beyond double
    throw DataError(fmt::format("[json] {}.", error.what()));
  }
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, size_t most) {
  return parse_ordered_json(
      text, [](std::span<const std::string>, std::string_view) { return false; }, most);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, TakeString take, size_t most) {
  check_text(text, most);
  OrderedBuilder builder(take);
  nlohmann::ordered_json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace lockstep
