#include "tests/forms/form_writer.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/base/check.h"
#include "core/dispatch/dispatcher.h"

namespace lockstep::forms {

namespace {

constexpr std::string_view kHead =
    "// Written by `./dev forms` from the operators' declarations; do not edit.\n"
    "// clang-format off\n\n";

struct Parameter {
  std::string type;
  std::string name;
  std::string value;  ///< its default, or empty
  bool destination = false;
};

/// One operator as C++ has it.
struct Form {
  std::string name;    ///< "add", "add_", "add_out"
  std::string op;      ///< "add.Tensor"
  std::string result;  ///< C++ type
  std::string doc;
  std::vector<Parameter> parameters;  ///< in the schema's order
  bool method = false;
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

/// A demangled type as our sources write it.
std::string written_type(std::string type) {
  replace_all(type, "std::basic_string_view<char, std::char_traits<char> >", "std::string_view");
  replace_all(type, ", std::allocator<lockstep::Tensor> >", ">");
  replace_all(type, "lockstep::", "");
  replace_all(type, " >", ">");
  if (type == "long") type = "int64_t";
  replace_all(type, "<long>", "<int64_t>");
  for (const std::string_view end : {" const&", " const"}) {
    if (type.ends_with(end)) {
      type = "const " + type.substr(0, type.size() - end.size()) + (end.ends_with('&') ? "&" : "");
    }
  }
  return type;
}

/// Result and argument types of an operator's C++ function.
std::pair<std::string, std::vector<std::string>> signature(const Operator& op) {
  // R(const Operator&, KeySet, A...)
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(op.adapters().functional_type->name(), nullptr, nullptr, &status),
      &std::free);
  LS_CHECK(status == 0, Error, "[forms] {} has a type that cannot be read.", op.name());
  const std::string_view whole = text.get();
  const size_t open = whole.find(" (");
  std::vector<std::string> types = split_list(whole.substr(open + 2, whole.size() - open - 3));
  types.erase(types.begin(), types.begin() + 2);
  for (std::string& type : types) type = written_type(std::move(type));
  return {written_type(std::string(whole.substr(0, open))), std::move(types)};
}

std::string number_text(double number) {
  if (std::isinf(number)) {
    return std::string(number < 0 ? "-" : "") + "std::numeric_limits<double>::infinity()";
  }
  std::string text = fmt::format("{}", number);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

/// A default argument; empty when C++ has to name the argument.
std::string default_text(const Argument& argument, const std::string& type) {
  const Value& value = argument.default_value;
  switch (value.tag()) {
    case Value::Tag::kNone:
      return type == "Generator*" ? "nullptr" : type == "OptionalTensor" ? "{}" : "std::nullopt";
    case Value::Tag::kBool:
      return value.to_bool() ? "true" : "false";
    case Value::Tag::kDouble:
      return number_text(value.to_double());
    case Value::Tag::kInt:
      if (!argument.type.list) return std::to_string(value.to_int());
      return fmt::format(
          "{{{}}}",
          fmt::join(std::vector<int64_t>(static_cast<size_t>(argument.list_size), value.to_int()),
                    ", "));
    case Value::Tag::kScalar: {
      const Scalar scalar = value.to_scalar();
      if (scalar.kind() == DType::kBool) return scalar.to_bool() ? "true" : "false";
      return scalar.is_floating() ? number_text(scalar.to_double())
                                  : std::to_string(scalar.to_int());
    }
    case Value::Tag::kIntList:
    case Value::Tag::kOwnedIntList: {
      const IntList list = value.to_int_list();
      return fmt::format("{{{}}}", fmt::join(list.begin(), list.end(), ", "));
    }
    case Value::Tag::kString:
    case Value::Tag::kOwnedString:
      return fmt::format("\"{}\"", value.to_string_view());
    case Value::Tag::kMemoryFormat:
      return value.to_memory_format() == MemoryFormat::kContiguous ? "MemoryFormat::kContiguous"
                                                                   : "";
    default:
      return "";
  }
}

/// Nothing for the operators that written_forms leaves out.
std::optional<Form> form_of(const Operator& op) {
  const Schema& schema = op.schema();
  if (schema.name.starts_with('_') || schema.name.find(':') != std::string::npos) return {};
  // std(x, 1) would mean std(x, true), not dimension 1; the form with a correction takes a bool,
  // too.
  if (schema.find("unbiased") >= 0) return {};
  auto [result, types] = signature(op);
  Form form{schema.name, op.name(), result, op.root().doc(), {}, false};
  size_t destinations = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    const Argument& argument = schema.arguments[i];
    if (argument.type.base == BaseType::kLayout) return {};
    Parameter parameter{types[i], argument.name, {}, argument.written && argument.keyword_only};
    if (argument.has_default) parameter.value = default_text(argument, parameter.type);
    destinations += parameter.destination ? 1 : 0;
    form.parameters.push_back(std::move(parameter));
  }
  const bool backward = schema.name.ends_with("_backward");
  if (backward && destinations > 0) return {};
  if (destinations > 0) form.name += "_out";
  form.method = destinations == 0 && !form.parameters.empty() &&
                schema.arguments[0].name == "self" && types[0] == "const Tensor&" && !backward;
  return form;
}

/// What a function takes: lists that may be absent come in braces and as one number, too.
std::string parameter_type(const std::string& type) {
  if (type == "std::optional<IntList>") return "OptionalIntList";
  return type == "Scalar" ? "const Scalar&" : type;
}

/// Parameters in C++ order: destinations first, and for a method without self.
std::vector<Parameter> in_order(const Form& form, bool method) {
  std::vector<Parameter> ordered;
  for (const bool destinations : {true, false}) {
    for (size_t i = method ? 1 : 0; i < form.parameters.size(); ++i) {
      const Parameter& parameter = form.parameters[i];
      if (parameter.destination == destinations) ordered.push_back(parameter);
    }
  }
  return ordered;
}

/// Adds the form to `present`; the number of parameters without a default, or nothing when its
/// calls would be another's.
std::optional<size_t> place(const Form& form, bool method, Overloads& present) {
  Overload overload;
  for (const Parameter& parameter : in_order(form, method)) {
    overload.kinds.push_back(kind_of_type(parameter_type(parameter.type)));
    if (parameter.value.empty()) overload.required = overload.kinds.size();
  }
  std::vector<Overload>& others = present[form.name];
  if (!fit_in(others, overload)) return {};
  others.push_back(overload);
  return overload.required;
}

/// Text that starts with `head` and goes on with `parts`, wrapped at 100 columns.
std::string wrapped(const std::string& head, const std::vector<std::string>& parts,
                    std::string_view end) {
  const std::string indent(std::min<size_t>(head.size(), 60), ' ');
  std::string text = head;
  size_t column = head.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part = parts[i] + (i + 1 < parts.size() ? "," : std::string(end));
    if (i > 0 && column + 1 + part.size() > 100) {
      text += "\n" + indent;
      column = indent.size();
    } else if (i > 0) {
      text += ' ';
      ++column;
    }
    text += part;
    column += part.size();
  }
  return parts.empty() ? text + std::string(end) : text;
}

std::string declaration(const Form& form, bool method, size_t required) {
  std::vector<std::string> parts;
  for (const Parameter& parameter : in_order(form, method)) {
    const std::string type = parameter_type(parameter.type);
    parts.push_back(type + (type.ends_with('*') || type.ends_with('&') ? " " : " ") +
                    parameter.name);
    if (parts.size() > required) parts.back() += " = " + parameter.value;
  }
  const std::string head = fmt::format("{}{} {}(", method ? "  " : "", form.result, form.name);
  return wrapped(head, parts, method ? ") const;" : ");") + "\n";
}

std::string definition(const Form& form, bool method) {
  std::vector<std::string> parameters;
  for (const Parameter& parameter : in_order(form, method)) {
    parameters.push_back(parameter_type(parameter.type) + " " + parameter.name);
  }
  std::vector<std::string> types;
  std::vector<std::string> arguments;
  for (size_t i = 0; i < form.parameters.size(); ++i) {
    types.push_back(form.parameters[i].type);
    arguments.push_back(method && i == 0 ? "*this" : form.parameters[i].name);
  }
  const std::string head =
      wrapped(fmt::format("{} {}{}(", form.result, method ? "Tensor::" : "", form.name), parameters,
              method ? ") const {" : ") {");
  const std::string call = fmt::format("return form<{}({}), \"{}\">()({});", form.result,
                                       fmt::join(types, ", "), form.op, fmt::join(arguments, ", "));
  const bool one_line =
      head.find('\n') == std::string::npos && head.size() + call.size() + 3 <= 100;
  return head + (one_line ? " " + call + " }\n" : "\n  " + call + "\n}\n");
}

/// The operator's description as a comment.
std::string comment(const Form& form) {
  std::istringstream words(form.doc);
  std::string text;
  std::string line = "///";
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > 100) {
      text += line + "\n";
      line = "///";
    }
    line += ' ' + word;
  }
  return text + line + "\n";
}

/// "pointwise" for an operator declared in core/ops/pointwise/, nothing for one declared elsewhere.
std::string folder_of(const Operator& op) {
  const std::string_view file = op.root().site().file;
  constexpr std::string_view kOps = "core/ops/";
  const size_t at = file.find(kOps);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = file.substr(at + kOps.size());
  return std::string(rest.substr(0, rest.find('/')));
}

/// What a folder's files hold.
struct Folder {
  std::string functions, methods;  ///< declarations
  std::vector<std::string> function_bodies, method_bodies;
};

std::string in_namespace(const std::string& text) {
  return fmt::format("namespace lockstep {{\n\n{}\n}}  // namespace lockstep\n", text);
}

/// A source file of definitions, which includes `header`, if any, first.
std::string source(const std::string& header, const std::string& definitions) {
  return (header.empty() ? "" : fmt::format("#include \"{}\"\n\n", header)) + std::string(kHead) +
         "#include \"core/ops/forms/form.h\"\n\n" + in_namespace(definitions);
}

/// Adds `definitions`, one a string, as BASE.cc, and as BASE_2.cc and so on what is above the
/// length of a file.
void add_sources(Files& files, const std::string& base, const std::string& header,
                 const std::vector<std::string>& definitions) {
  constexpr std::ptrdiff_t kMostLines = 500;
  std::string text;
  std::ptrdiff_t lines = 0;
  int part = 1;
  for (size_t i = 0; i < definitions.size(); ++i) {
    text += definitions[i];
    lines += std::ranges::count(definitions[i], '\n');
    if (lines < kMostLines && i + 1 < definitions.size()) continue;
    files[part == 1 ? base + ".cc" : fmt::format("{}_{}.cc", base, part)] =
        source(part == 1 ? header : "", text);
    text.clear();
    lines = 0;
    ++part;
  }
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  LS_CHECK(in, Error, "[forms] cannot read {}.", path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

Files written_forms(Overloads functions, Overloads methods) {
  std::map<std::string, Folder> folders;
  for (const Operator* op : dispatcher().operators()) {
    const std::string name = folder_of(*op);
    const std::optional<Form> form = name.empty() ? std::nullopt : form_of(*op);
    if (!form) continue;
    Folder& folder = folders[name];
    const bool described =
        functions.contains(form->name) || form->name.ends_with('_') || form->name.ends_with("_out");
    // One function has a namespace's name.
    const auto required_by_function =
        form->name == "dist" ? std::nullopt : place(*form, false, functions);
    if (required_by_function) {
      if (!described) folder.functions += comment(*form);
      folder.functions += declaration(*form, false, *required_by_function);
      folder.function_bodies.push_back(definition(*form, false));
    }
    if (!form->method) continue;
    if (const auto required = place(*form, true, methods)) {
      folder.methods += declaration(*form, true, *required);
      folder.method_bodies.push_back(definition(*form, true));
    }
  }
  Files files;
  for (const auto& [name, folder] : folders) {
    const std::string base = "core/ops/forms/" + name;
    if (!folder.functions.empty()) {
      files[base + ".h"] = fmt::format("#pragma once\n\n{}#include \"core/tensor/tensor.h\"\n\n{}",
                                       kHead, in_namespace(folder.functions));
      add_sources(files, base, base + ".h", folder.function_bodies);
    }
    if (!folder.methods.empty()) {
      files[fmt::format("core/tensor/methods/{}.inc", name)] = std::string(kHead) + folder.methods;
      add_sources(files, base + "_methods", "", folder.method_bodies);
    }
  }
  return files;
}

Files written_forms(const std::string& root) {
  Overloads functions;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(root) / "core/ops")) {
    if (entry.path().extension() != ".h" || entry.path().parent_path().filename() == "forms")
      continue;
    for (auto& [name, overloads] : declared_functions(text_of(entry.path()))) {
      auto& all = functions[name];
      all.insert(all.end(), overloads.begin(), overloads.end());
    }
  }
  const std::string tensor = text_of(std::filesystem::path(root) / "core/tensor/tensor.h");
  return written_forms(std::move(functions), declared_functions(class_body(tensor, "Tensor")));
}

}  // namespace lockstep::forms
