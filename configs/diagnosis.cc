#include "configs/diagnosis.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>

#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "configs/field.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;
using Token = pb::io::Tokenizer::Token;
using pb::io::Tokenizer;

/// Reads the tokens of a text beside the schema until something does not fit.
class Walk {
 public:
  explicit Walk(const std::string& text)
      : input_(text.data(), static_cast<int>(text.size())), tokenizer_(&input_, &dropped_errors()) {
    tokenizer_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
    tokenizer_.set_allow_f_after_float(true);
    tokenizer_.Next();
  }

  std::optional<Finding> run(const pb::Descriptor& type) {
    fields(type, "", nullptr);
    return std::move(finding_);
  }

 private:
  const Token& current() { return tokenizer_.current(); }
  bool at(std::string_view text) { return current().text == text; }

  bool take(std::string_view text) {
    if (!at(text)) return false;
    tokenizer_.Next();
    return true;
  }

  bool stop(const Token& token, std::string problem) {
    finding_ = Finding{token.line, token.column, std::move(problem)};
    return false;
  }

  /// Reads the fields of one message and its closing brace; `opened` is the message's name, null
  /// for the whole text. Returns false if an error was found, or one that only the parser can
  /// describe.
  bool fields(const pb::Descriptor& type, const std::string& path, const Token* opened) {
    std::map<std::string, Token> seen;  // fields so far, by field name or name of their oneof
    std::map<std::string, int> sizes;   // sizes of lists, which may be written in several pieces
    while (true) {
      if (current().type == Tokenizer::TYPE_END) {
        if (opened == nullptr) return true;
        return stop(*opened, fmt::format("{} {{ is never closed. Add the missing }}.", path));
      }
      if (opened != nullptr && (take("}") || take(">"))) return true;
      if (current().type != Tokenizer::TYPE_IDENTIFIER) return false;
      const Token name = current();
      const FieldDescriptor* field = type.FindFieldByName(name.text);
      if (field == nullptr) return stop(name, unknown_field(path, type, name.text));
      if (!field->is_repeated() && !first_time(*field, name, path, seen)) return false;
      tokenizer_.Next();
      if (!value(*field, name, join_path(path, name.text), sizes[name.text])) return false;
      if (!take(",")) take(";");
    }
  }

  bool first_time(const FieldDescriptor& field, const Token& name, const std::string& path,
                  std::map<std::string, Token>& seen) {
    const pb::OneofDescriptor* choice = field.real_containing_oneof();
    const auto [earlier, is_new] = seen.emplace(choice ? choice->name() : field.name(), name);
    if (is_new) return true;
    const Token& before = earlier->second;
    const std::string place = fmt::format("line {}", before.line + 1);
    if (before.text == name.text) {
      return stop(name, fmt::format("{} is set a second time, after {}. Keep one.",
                                    join_path(path, name.text), place));
    }
    return stop(name, fmt::format("{} has both {} ({}) and {}: only one {} can be chosen.", path,
                                  before.text, place, name.text, choice->name()));
  }

  bool value(const FieldDescriptor& field, const Token& name, const std::string& path, int& size) {
    const bool colon = take(":");
    const bool braced = at("{") || at("<");
    if (holds_fields(field)) {
      if (!braced) {
        return stop(name, fmt::format("{} holds fields: expected {} {{ ... }}, got {}.", path,
                                      name.text, described(current())));
      }
      tokenizer_.Next();
      const std::string element = field.is_repeated() ? value_path(path, size++) : path;
      return fields(*field.message_type(), element, &name);
    }
    if (field.is_repeated()) {
      if (colon && !braced) return values(field, path, size);
      return stop(name, fmt::format("{} holds a list: expected {}: {}, got {}.", path, name.text,
                                    expected(field), described(current())));
    }
    if (!colon || braced || at("[")) {
      return stop(name, fmt::format("{} holds one value: expected {}: and {}, got {}.", path,
                                    name.text, expected(field), described(current())));
    }
    return scalar(field, path);
  }

  /// Reads what follows the colon of a list: a single value, or several in brackets.
  bool values(const FieldDescriptor& field, const std::string& path, int& size) {
    if (!take("[")) return scalar(field, value_path(path, size++));
    if (take("]")) return true;
    while (scalar(field, value_path(path, size++))) {
      if (take("]")) return true;
      if (take(",")) continue;
      return stop(current(), fmt::format("{}: expected , or ] after {} values, got {}.", path, size,
                                         described(current())));
    }
    return false;
  }

  bool scalar(const FieldDescriptor& field, const std::string& path) {
    const Token start = current();
    const bool wants_text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    std::string text = take("-") ? "-" : "";
    text += current().text;
    const bool is_text = current().type == Tokenizer::TYPE_STRING;
    const bool is_value = is_text || current().type == Tokenizer::TYPE_IDENTIFIER ||
                          current().type == Tokenizer::TYPE_INTEGER ||
                          current().type == Tokenizer::TYPE_FLOAT;
    if (!is_value) {
      return stop(start, fmt::format("{} has no value: expected {}, got {}.", path,
                                     expected_value(field), described(current())));
    }
    const pb::Message* prototype =
        pb::MessageFactory::generated_factory()->GetPrototype(field.containing_type());
    const std::unique_ptr<pb::Message> scratch(prototype->New());
    if (wants_text != is_text || !assign(*scratch, field, text)) {
      return stop(start, wrong_value(path, field, text));
    }
    tokenizer_.Next();
    // Adjacent string literals are one value.
    while (is_text && current().type == Tokenizer::TYPE_STRING) tokenizer_.Next();
    return true;
  }

  static std::string described(const Token& token) {
    return token.type == Tokenizer::TYPE_END ? "the end of the text" : token.text;
  }

  pb::io::ArrayInputStream input_;
  Tokenizer tokenizer_;
  std::optional<Finding> finding_;
};

}  // namespace

Finding diagnose(const std::string& text, const pb::Descriptor& type, Finding parser) {
  std::optional<Finding> own = Walk(text).run(type);
  const auto place = [](const Finding& finding) { return std::tie(finding.line, finding.column); };
  return own && place(*own) <= place(parser) ? *std::move(own) : std::move(parser);
}

}  // namespace lockstep::config
