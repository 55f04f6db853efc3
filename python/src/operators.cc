#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unordered_map>

#include "bindings.h"

namespace lockstep::python {
namespace {

using Named = std::span<const std::pair<std::string, nb::handle>>;

/// The operators of a name with all their overloads, or the one overload that is named.
std::vector<const Operator*> overloads_of(std::string name) {
  // Read under the GIL; operators that plug-ins define later are found when the name is missing.
  static auto& known = *new std::unordered_map<std::string, std::vector<const Operator*>>();
  if (name.starts_with("aten::")) name.erase(0, 6);
  if (const auto found = known.find(name); found != known.end()) return found->second;
  if (const Operator* const exact = dispatcher().find_or_null(name);
      exact != nullptr && !exact->schema().overload.empty()) {
    return {exact};
  }
  known.clear();
  for (const Operator* each : dispatcher().operators()) known[each->schema().name].push_back(each);
  const auto found = known.find(name);
  if (found == known.end()) return {};
  return found->second;
}

/// The arguments of one call, once an overload has been found that takes them.
struct Call {
  std::vector<Value> positional;
  std::vector<NamedValue> named;
  Kept kept;
};

/// What keeps an operator from taking the arguments; empty if it takes them.
std::string obstacle(const Operator& op, std::span<const nb::handle> positional, Named named,
                     Call& call) {
  const std::vector<Argument>& arguments = op.schema().arguments;
  std::vector<bool> given(arguments.size());
  const auto wrong = [](const Argument& argument, nb::handle object) {
    return "argument " + argument.name + " has the wrong type: expected " +
           to_string(argument.type) + ", got " + nb::inst_name(object).c_str() + ".";
  };
  for (size_t i = 0; i < positional.size(); ++i) {
    if (i == arguments.size() || arguments[i].keyword_only) {
      return "too many arguments: expected at most " + std::to_string(i) + " without names, got " +
             std::to_string(positional.size()) + ".";
    }
    std::optional<Value> value = value_from(arguments[i], positional[i], call.kept);
    if (!value) return wrong(arguments[i], positional[i]);
    call.positional.push_back(std::move(*value));
    given[i] = true;
  }
  for (const auto& [name, object] : named) {
    const int place = op.schema().find(name);
    if (place < 0) return "there is no argument \"" + name + "\".";
    const Argument& argument = arguments[static_cast<size_t>(place)];
    if (given[static_cast<size_t>(place)]) return "argument " + name + " is given twice.";
    std::optional<Value> value = value_from(argument, object, call.kept);
    if (!value) return wrong(argument, object);
    call.named.push_back({name, std::move(*value)});
    given[static_cast<size_t>(place)] = true;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!given[i] && !arguments[i].has_default && !arguments[i].type.optional) {
      return "argument " + arguments[i].name + " is missing: expected " +
             to_string(arguments[i].type) + ".";
    }
  }
  return "";
}

/// An overload that writes into an argument given for that.
bool is_out_form(const Operator& op) {
  return op.schema().is_mutable() && op.schema().overload.find("out") != std::string::npos;
}

[[noreturn]] void refuse(const std::string& name, const std::vector<const Operator*>& candidates,
                         const std::vector<std::string>& obstacles) {
  std::vector<size_t> shown;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!is_out_form(*candidates[i])) shown.push_back(i);
  }
  if (shown.empty()) shown.push_back(0);
  std::string text = "[" + name + "] ";
  if (shown.size() == 1) {
    text += obstacles[shown[0]] + " " + candidates[shown[0]]->schema().to_string();
  } else {
    text += "no overload takes these arguments: expected those of one of";
    for (const size_t i : shown) {
      text += "\n  " + candidates[i]->schema().to_string() + "\n    " + obstacles[i];
    }
  }
  throw nb::type_error(text.c_str());
}

nb::object run(const Operator& op, Call& call) {
  std::vector<Value> results;
  {
    const nb::gil_scoped_release released;
    results = call_values(op, call.positional, call.named);
  }
  if (results.empty()) return nb::none();
  if (results.size() == 1) return object_from(results[0], call.kept);
  nb::list list;
  for (Value& result : results) list.append(object_from(result, call.kept));
  return nb::tuple(list);
}

/// The operators that Python's signs stand for, `self` first. With `swapped` the other operand is
/// first.
struct Sign {
  const char* method;
  const char* op;
  bool swapped = false;
};
constexpr Sign kSigns[] = {
    {"__add__", "add"},
    {"__radd__", "add"},
    {"__sub__", "sub"},
    {"__rsub__", "rsub"},
    {"__mul__", "mul"},
    {"__rmul__", "mul"},
    {"__truediv__", "div"},
    {"__floordiv__", "floor_divide"},
    {"__mod__", "remainder"},
    {"__pow__", "pow"},
    {"__rpow__", "pow", true},
    {"__matmul__", "matmul"},
    {"__rmatmul__", "matmul", true},
    {"__and__", "bitwise_and"},
    {"__or__", "bitwise_or"},
    {"__xor__", "bitwise_xor"},
    {"__eq__", "eq"},
    {"__ne__", "ne"},
    {"__lt__", "lt"},
    {"__le__", "le"},
    {"__gt__", "gt"},
    {"__ge__", "ge"},
};
constexpr Sign kUnarySigns[] = {
    {"__neg__", "neg"}, {"__abs__", "abs"}, {"__invert__", "bitwise_not"}};

bool is_operand(nb::handle object) {
  return nb::isinstance<Tensor>(object) || nb::hasattr(object, "__dlpack__") ||
         nb::hasattr(object, "__float__");
}

void bind_signs(nb::class_<Tensor>& tensor) {
  for (const Sign& sign : kSigns) {
    const std::string signature =
        std::string("def ") + sign.method + "(self, other: object, /) -> Tensor";
    tensor.def(
        sign.method,
        [sign](nb::handle self, nb::handle other) -> nb::object {
          // Python asks the other operand then.
          if (!is_operand(other)) return nb::borrow(nb::handle(Py_NotImplemented));
          const nb::handle operands[] = {sign.swapped ? other : self, sign.swapped ? self : other};
          return call_operator(sign.op, operands);
        },
        nb::is_operator(), nb::sig(signature.c_str()));
  }
  for (const Sign& sign : kUnarySigns) {
    const std::string signature = std::string("def ") + sign.method + "(self, /) -> Tensor";
    tensor.def(
        sign.method,
        [sign](nb::handle self) {
          const nb::handle operands[] = {self};
          return call_operator(sign.op, operands);
        },
        nb::sig(signature.c_str()));
  }
  tensor.def(
      "__rtruediv__",
      [](nb::handle self, nb::handle other) -> nb::object {
        if (!is_operand(other)) return nb::borrow(nb::handle(Py_NotImplemented));
        const nb::handle divisor[] = {self};
        const nb::object reciprocal = call_operator("reciprocal", divisor);
        const nb::handle factors[] = {reciprocal, other};
        return call_operator("mul", factors);
      },
      nb::is_operator(), nb::sig("def __rtruediv__(self, other: object, /) -> Tensor"));
}

}  // namespace

nb::object call_operator(const std::string& name, std::span<const nb::handle> positional,
                         Named named) {
  const std::vector<const Operator*> candidates = overloads_of(name);
  // Names the nearest operators.
  if (candidates.empty()) (void)dispatcher().find(name);
  std::vector<std::string> obstacles;
  for (const Operator* op : candidates) {
    Call call;
    obstacles.push_back(obstacle(*op, positional, named, call));
    if (obstacles.back().empty()) return run(*op, call);
  }
  refuse(name, candidates, obstacles);
}

void bind_operators(nb::module_& module, nb::class_<Tensor>& tensor) {
  module.def(
      "call",
      [](const std::string& name, nb::args args, nb::kwargs kwargs) {
        std::vector<nb::handle> positional;
        for (const nb::handle each : args) positional.push_back(each);
        std::vector<std::pair<std::string, nb::handle>> named;
        for (const auto& [key, value] : kwargs) named.emplace_back(nb::str(key).c_str(), value);
        return call_operator(name, positional, named);
      },
      nb::sig("def call(name: str, /, *args: object, **kwargs: object) -> typing.Any"),
      "Calls an operator by ATen's name, with or without the overload: call(\"aten::softmax\", x, "
      "dim=-1). Arrays of other libraries are used where they lie. Other threads run meanwhile.");
  module.def(
      "schemas",
      [](const std::string& name) {
        std::vector<std::string> texts;
        for (const Operator* op : overloads_of(name)) texts.push_back(op->schema().to_string());
        return texts;
      },
      nb::arg("name"),
      "The schemas of an operator's overloads; none if there is no such operator.");
  module.def(
      "operator_names",
      [] {
        std::vector<std::string> names;
        for (const Operator* op : dispatcher().operators()) {
          const std::string& name = op->schema().name;
          if (names.empty() || names.back() != name) names.push_back(name);
        }
        return names;
      },
      "All operators, without overloads, sorted.");
  bind_signs(tensor);
}

}  // namespace lockstep::python
