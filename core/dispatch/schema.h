#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dispatch/value.h"

namespace lockstep {

/// Base type of an argument in a schema.
enum class BaseType : uint8_t {
  kTensor,
  kScalar,
  kInt,
  kFloat,
  kBool,
  kStr,
  kDType,
  kDevice,
  kLayout,
  kMemoryFormat,
  kGenerator,
};

/// Type of an argument or result, such as `Tensor?`, `int[]` or `Tensor?[]`.
struct Type {
  BaseType base = BaseType::kTensor;
  bool optional = false;  ///< `?` on the whole
  bool list = false;
  bool optional_element = false;  ///< `Tensor?[]`

  friend bool operator==(const Type&, const Type&) = default;
};
std::string to_string(const Type& type);

struct Argument {
  std::string name;
  Type type;
  int64_t list_size = 0;  ///< N of `int[N]`: a single number is repeated N times; 0 for any length
  char alias = 0;         ///< the letter of `Tensor(a!)`, 0 when there is none
  bool written = false;   ///< `!`: the operator changes it
  bool keyword_only = false;
  bool has_default = false;
  Value default_value;  ///< owns what it holds
};

struct Return {
  std::string name;
  Type type;
  char alias = 0;
  bool written = false;
};

/// An operator's signature in ATen's schema language.
struct Schema {
  std::string name;      ///< "add"; with the namespace, unless that is "aten": "my::scale_clamp"
  std::string overload;  ///< "Tensor", or empty
  std::vector<Argument> arguments;
  std::vector<Return> returns;

  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
  /// Index of an argument, or -1.
  int find(std::string_view argument) const;
  /// Index of the argument that return `i` aliases and that is written (`Tensor(a!)`), or -1.
  int written_alias(size_t i) const;
  bool is_mutable() const;
  std::string to_string() const;
};

/// Parses one schema; a leading `aten::` is allowed. Throws DispatchError with the position and
/// what was expected there.
Schema parse_schema(std::string_view text);

}  // namespace lockstep
