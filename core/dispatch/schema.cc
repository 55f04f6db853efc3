#include "core/dispatch/schema.h"

#include <charconv>
#include <utility>

#include "core/base/check.h"

namespace lockstep {

namespace {

constexpr std::pair<std::string_view, BaseType> kTypes[] = {
    {"Tensor", BaseType::kTensor},
    {"Scalar", BaseType::kScalar},
    {"int", BaseType::kInt},
    {"SymInt", BaseType::kInt},
    {"float", BaseType::kFloat},
    {"bool", BaseType::kBool},
    {"str", BaseType::kStr},
    {"ScalarType", BaseType::kDType},
    {"Device", BaseType::kDevice},
    {"Layout", BaseType::kLayout},
    {"MemoryFormat", BaseType::kMemoryFormat},
    {"Generator", BaseType::kGenerator},
};

/// Largest N of `int[N]`: a default value is repeated N times.
constexpr int64_t kMostListSize = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Schema parse() {
    Schema schema;
    skip_prefix("aten::");
    schema.name = word("an operator name");
    if (text_.substr(at_).starts_with("::")) {
      at_ += 2;
      schema.name += "::" + word("an operator name");
    }
    if (take('.')) schema.overload = word("an overload name");
    expect('(');
    bool keyword_only = false;
    if (!take(')')) {
      do {
        if (!keyword_only && take('*')) {
          keyword_only = true;
          expect(',');
        }
        add_argument(schema, keyword_only);
      } while (take(','));
      expect(')');
    }
    expect('-');
    expect('>');
    if (take('(')) {
      if (!take(')')) {
        do schema.returns.push_back(result());
        while (take(','));
        expect(')');
      }
    } else {
      schema.returns.push_back(result(/*can_be_named=*/false));
    }
    skip_space();
    if (at_ != text_.size()) fail("the end");
    return schema;
  }

 private:
  [[noreturn]] void fail(std::string_view wanted) const {
    throw DispatchError(
        fmt::format("[schema] malformed at position {}: expected {}, got \"{}\" in \"{}\".", at_,
                    wanted, text_.substr(at_, 12), text_));
  }
  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  void skip_prefix(std::string_view prefix) {
    if (text_.substr(at_).starts_with(prefix)) at_ += prefix.size();
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}'", c));
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  std::string word(std::string_view what) {
    skip_space();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin) fail(what);
    return std::string(text_.substr(begin, at_ - begin));
  }

  struct FullType {
    Type type;
    int64_t list_size = 0;
    char alias = 0;
    bool written = false;
  };
  FullType type() {
    FullType full;
    const std::string base = word("a type");
    bool known = false;
    for (const auto& [name, value] : kTypes) {
      if (name == base) {
        full.type.base = value;
        known = true;
      }
    }
    if (!known) {
      at_ -= base.size();
      fail("a type (Tensor, Scalar, int, float, bool, str, ScalarType, ...)");
    }
    if (take('(')) {
      full.alias = word("an alias letter")[0];
      full.written = take('!');
      if (take('-')) {
        expect('>');
        if (!take('*')) word("an alias letter");
      }
      expect(')');
    }
    full.type.optional = take('?');
    if (take('[')) {
      full.type.list = true;
      full.type.optional_element = std::exchange(full.type.optional, false);
      if (!take(']')) {
        const size_t begin = at_;
        full.list_size = number();
        if (full.list_size < 1 || full.list_size > kMostListSize) {
          at_ = begin;
          fail(fmt::format("the length of a list, 1 to {}", kMostListSize));
        }
        expect(']');
      }
      if (take('?')) full.type.optional = true;
    }
    return full;
  }
  int64_t number() {
    skip_space();
    int64_t value = 0;
    const auto [end, failure] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (failure != std::errc()) fail("a number");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  /// Refuses an argument that could not be told from another, or be left out.
  void add_argument(Schema& schema, bool keyword_only) {
    skip_space();
    const size_t begin = at_;
    Argument argument = parse_argument(keyword_only);
    const auto refuse = [&](std::string_view wanted) {
      at_ = begin;
      fail(wanted);
    };
    if (schema.find(argument.name) >= 0) {
      refuse(fmt::format("a name that no other argument has, not \"{}\" again", argument.name));
    }
    const bool after_default = !schema.arguments.empty() && schema.arguments.back().has_default;
    if (after_default && !keyword_only && !argument.has_default) {
      refuse(fmt::format("a default for \"{}\", or a * before it, because \"{}\" has a default",
                         argument.name, schema.arguments.back().name));
    }
    schema.arguments.push_back(std::move(argument));
  }

  Argument parse_argument(bool keyword_only) {
    Argument argument;
    const FullType full = type();
    argument.type = full.type;
    argument.list_size = full.list_size;
    argument.alias = full.alias;
    argument.written = full.written;
    argument.keyword_only = keyword_only;
    argument.name = word("an argument name");
    if (take('=')) {
      argument.has_default = true;
      argument.default_value = default_value(full);
    }
    return argument;
  }

  /// Parses `token` as a number; returns false unless all of it is one.
  template <class T>
  static bool parse_all(std::string_view token, T& value) {
    const auto [end, failure] = std::from_chars(token.data(), token.data() + token.size(), value);
    return failure == std::errc() && end == token.data() + token.size();
  }

  Value default_value(const FullType& full) {
    skip_space();
    const auto wanted = [&] { return "a default of type " + to_string(full.type); };
    if (full.type.list && take('[')) {
      Dims list;
      if (full.type.base == BaseType::kTensor) {
        if (!take(']')) fail("]: a list of tensors is empty by default");
        return Value(TensorList()).own();
      }
      if (!take(']')) {
        if (full.type.base != BaseType::kInt) fail(wanted() + " that is empty");
        do list.push_back(number());
        while (take(','));
        expect(']');
      }
      return Value(IntList(list)).own();
    }
    if (full.type.base == BaseType::kStr && !full.type.list && (take('"') || take('\''))) {
      const std::string text = word("text");
      if (!take('"')) expect('\'');
      return Value(std::string_view(text)).own();
    }
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')') ++at_;
    const std::string_view token = text_.substr(begin, at_ - begin);
    const BaseType base = full.type.base;
    if (token == "None" && full.type.optional) return {};
    if ((token == "True" || token == "False") && base == BaseType::kBool) {
      return Value(token == "True");
    }
    if (base == BaseType::kMemoryFormat) {
      for (int i = 0; i < 4; ++i) {  // by name or, as PyTorch prints it, by number
        const MemoryFormat format = static_cast<MemoryFormat>(i);
        if (token == name(format) || token == std::to_string(i)) return Value(format);
      }
    }
    if (base == BaseType::kDType) {
      if (const std::optional<DType> dtype = parse_dtype(token)) return Value(*dtype);
    }
    if (token == "Mean" && base == BaseType::kInt) return Value(int64_t{1});
    if (token == "long" && base == BaseType::kDType) return Value(DType::kI64);
    int64_t integer = 0;
    double real = 0;
    const bool takes_real = base == BaseType::kFloat || base == BaseType::kScalar;
    const bool integral = (takes_real || base == BaseType::kInt) && parse_all(token, integer);
    if (!integral && !(takes_real && parse_all(token, real))) {
      at_ = begin;
      fail(wanted());
    }
    if (base == BaseType::kFloat) return Value(integral ? static_cast<double>(integer) : real);
    if (base == BaseType::kScalar) {
      return Value(integral ? Scalar(integer) : Scalar(real));
    }
    if (full.type.list) {  // `int[2] stride=1` means [1, 1]
      const Dims list(static_cast<size_t>(std::max<int64_t>(full.list_size, 1)), integer);
      return Value(IntList(list)).own();
    }
    return Value(integer);
  }

  /// A result outside parentheses has no name.
  Return result(bool can_be_named = true) {
    const FullType full = type();
    Return result{"", full.type, full.alias, full.written};
    skip_space();
    if (can_be_named && at_ < text_.size() && is_word(text_[at_])) result.name = word("a name");
    return result;
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string aliased(const Type& type, char alias, bool written, int64_t list_size = 0) {
  std::string text = to_string(type);
  if (list_size != 0) text.insert(text.find(']'), std::to_string(list_size));
  if (alias == 0) return text;
  const std::string note = fmt::format("({}{})", alias, written ? "!" : "");
  return text.insert(
      text.find_first_of("?[") == std::string::npos ? text.size() : text.find_first_of("?["), note);
}

}  // namespace

std::string to_string(const Type& type) {
  std::string text;
  for (const auto& [name, value] : kTypes) {
    if (value == type.base && text.empty()) text = name;
  }
  if (type.optional_element) text += "?";
  if (type.list) text += "[]";
  if (type.optional) text += "?";
  return text;
}

int Schema::find(std::string_view argument) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == argument) return static_cast<int>(i);
  }
  return -1;
}

int Schema::written_alias(size_t i) const {
  if (i >= returns.size() || !returns[i].written) return -1;
  for (size_t a = 0; a < arguments.size(); ++a) {
    if (arguments[a].alias == returns[i].alias) return static_cast<int>(a);
  }
  return -1;
}

bool Schema::is_mutable() const {
  for (const Argument& argument : arguments) {
    if (argument.written) return true;
  }
  return false;
}

std::string Schema::to_string() const {
  std::string text = full_name() + "(";
  bool keyword_only = false;
  for (const Argument& a : arguments) {
    if (text.back() != '(') text += ", ";
    if (a.keyword_only && !keyword_only) {
      text += "*, ";
      keyword_only = true;
    }
    text += aliased(a.type, a.alias, a.written, a.list_size) + " " + a.name;
    if (a.has_default) text += "=" + a.default_value.to_string();
  }
  text += ") -> ";
  std::string results;
  for (const Return& r : returns) {
    if (!results.empty()) results += ", ";
    results += aliased(r.type, r.alias, r.written);
    if (!r.name.empty()) results += " " + r.name;
  }
  const bool is_bare = returns.size() == 1 && returns[0].name.empty();
  return is_bare ? text + results : text + "(" + results + ")";
}

Schema parse_schema(std::string_view text) { return Parser(text).parse(); }

}  // namespace lockstep
