#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "compile/graph/graph.h"
#include "compile/graph/text_reader.h"
#include "core/base/check.h"
#include "core/dispatch/dispatcher.h"

namespace lockstep::compiler {

namespace {

std::string id_text(ValueId id) { return id == kAbsent ? "None" : fmt::format("%{}", id); }

/// The shortest text that reads back as the same number, told from an integer's.
std::string real_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string constant_text(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::kDouble:
      return real_text(value.to_double());
    case Value::Tag::kScalar: {
      const Scalar number = value.to_scalar();
      if (number.kind() == DType::kBool) return number.to_bool() ? "True" : "False";
      return number.is_floating() ? real_text(number.to_double()) : std::to_string(number.to_int());
    }
    case Value::Tag::kDoubleList:
    case Value::Tag::kOwnedDoubleList: {
      std::vector<std::string> parts;
      for (const double number : value.to_double_list()) parts.push_back(real_text(number));
      return fmt::format("[{}]", fmt::join(parts, ", "));
    }
    case Value::Tag::kBoolList: {
      std::vector<std::string> parts;
      const BoolList flags = value.to_bool_list();
      for (size_t i = 0; i < flags.size(); ++i) parts.push_back(flags[i] ? "True" : "False");
      return fmt::format("[{}]", fmt::join(parts, ", "));
    }
    case Value::Tag::kString:
    case Value::Tag::kOwnedString:
      return quoted(value.to_string_view());
    case Value::Tag::kDType:
      return to_string(value.to_dtype());
    case Value::Tag::kDevice:
      return to_string(value.to_device());
    case Value::Tag::kMemoryFormat:
      return fmt::format("format:{}", static_cast<int>(value.to_memory_format()));
    case Value::Tag::kLayout:
      return "strided";
    default:
      return value.to_string();  // None, integers, booleans, lists of integers
  }
}

/// A constant of the schema's type.
Value read_constant(TextReader& reader, const Type& type) {
  if (reader.accept("None")) return {};
  if (type.list) {
    if (type.base == BaseType::kFloat) {
      std::vector<double> numbers;
      reader.list([&] { numbers.push_back(reader.real()); });
      return Value(DoubleList(numbers)).own();
    }
    if (type.base == BaseType::kBool) {
      BoolList flags;
      reader.list([&] { flags.push_back(reader.boolean()); });
      return Value(flags);
    }
    std::vector<int64_t> numbers;
    reader.list([&] { numbers.push_back(reader.integer()); });
    return Value(IntList(numbers)).own();
  }
  switch (type.base) {
    case BaseType::kInt:
      return Value(reader.integer());
    case BaseType::kFloat:
      return Value(reader.real());
    case BaseType::kBool:
      return Value(reader.boolean());
    case BaseType::kScalar:
      return Value(reader.scalar());
    case BaseType::kStr: {
      const std::string text = reader.string();
      return Value(std::string_view(text)).own();
    }
    case BaseType::kDType:
      return Value(reader.dtype());
    case BaseType::kDevice:
      return Value(parse_device(reader.word()));
    case BaseType::kLayout:
      reader.expect("strided");
      return Value(Layout::kStrided);
    case BaseType::kMemoryFormat:
      reader.expect("format:");
      return Value(static_cast<MemoryFormat>(reader.integer()));
    default:
      reader.fail("a constant");
  }
}

ValueId read_id(TextReader& reader) {
  if (reader.accept("None")) return kAbsent;
  reader.expect("%");
  return static_cast<ValueId>(reader.integer());
}

NodeArgument read_argument(TextReader& reader, const Type& type) {
  NodeArgument argument;
  if (type.base != BaseType::kTensor) {
    argument.constant = read_constant(reader, type);
  } else if (type.list) {
    argument.kind = NodeArgument::Kind::kTensors;
    reader.list([&] { argument.values.push_back(read_id(reader)); });
  } else {
    argument.kind = NodeArgument::Kind::kTensor;
    argument.values.push_back(read_id(reader));
  }
  return argument;
}

Dims read_dims(TextReader& reader) {
  Dims dims;
  reader.list([&] { dims.push_back(reader.integer()); });
  return dims;
}

/// "%3: float32[2, 3] in 0": adds the value to the graph under its number.
ValueId read_value(TextReader& reader, Graph& graph) {
  const ValueId id = read_id(reader);
  if (id == kAbsent) return id;
  if (id < 0 || id > 1 << 24) reader.fail("a value's number");
  reader.expect(":");
  ValueType type;
  type.dtype = reader.dtype();
  type.sizes = read_dims(reader);
  type.strides = contiguous_strides(type.sizes);
  if (reader.accept("strides")) type.strides = read_dims(reader);
  if (reader.accept("on")) type.device = parse_device(reader.word());
  if (static_cast<size_t>(id) >= graph.values.size()) {
    graph.values.resize(static_cast<size_t>(id) + 1);
  }
  graph.values[static_cast<size_t>(id)] = type;
  if (reader.accept("in")) {
    graph.buffers.resize(std::max(graph.buffers.size(), graph.values.size()), kOwnMemory);
    graph.buffers[static_cast<size_t>(id)] = static_cast<int32_t>(reader.integer());
  }
  return id;
}

}  // namespace

std::string to_string(const ValueType& type) {
  std::string text = to_string(type.dtype) + to_string(type.sizes);
  if (!same(type.strides, contiguous_strides(type.sizes))) {
    text += " strides " + to_string(type.strides);
  }
  if (type.device != kCPU) text += " on " + to_string(type.device);
  return text;
}

std::string to_string(const NodeArgument& argument) {
  if (argument.kind == NodeArgument::Kind::kConstant) return constant_text(argument.constant);
  if (argument.kind == NodeArgument::Kind::kTensor) return id_text(argument.values[0]);
  std::vector<std::string> parts;
  for (const ValueId id : argument.values) parts.push_back(id_text(id));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string to_string(const Graph& graph) {
  const auto typed = [&](ValueId id) {
    if (id == kAbsent) return std::string("None");
    const auto at = static_cast<size_t>(id);
    const bool shares = !graph.buffers.empty() && graph.buffers[at] != kOwnMemory;
    return fmt::format("%{}: {}{}", id, to_string(graph.values[at]),
                       shares ? fmt::format(" in {}", graph.buffers[at]) : "");
  };
  const auto joined = [](const std::vector<ValueId>& ids, const auto& text_of) {
    std::vector<std::string> parts;
    for (const ValueId id : ids) parts.push_back(text_of(id));
    return fmt::format("{}", fmt::join(parts, ", "));
  };
  std::string text = fmt::format("graph({}) {{\n", joined(graph.inputs, typed));
  int32_t group = -1;
  const auto change_group = [&](int32_t next) {
    if (group != next && group != -1) text += "  }\n";
    if (group != next && next != -1) text += "  fused {\n";
    group = next;
  };
  for (const Node& node : graph.nodes) {
    change_group(node.group);
    std::vector<std::string> arguments;
    for (const NodeArgument& argument : node.arguments) {
      arguments.push_back(to_string(argument));
    }
    text +=
        fmt::format("{}{}{} = {}({})\n", group == -1 ? "  " : "    ", node.runs_once ? "once " : "",
                    joined(node.results, typed), node.op->name(), fmt::join(arguments, ", "));
  }
  change_group(-1);
  for (const Graph::Write& write : graph.writes) {
    text += fmt::format("  write %{} into %{}\n", write.value, write.input);
  }
  return text + fmt::format("  return {}\n}}\n", joined(graph.outputs, id_text));
}

Graph parse_graph(std::string_view text) {
  Graph graph;
  TextReader reader(text);
  reader.expect("graph");
  reader.list([&] { graph.inputs.push_back(read_value(reader, graph)); }, '(', ')');
  reader.expect("{");
  int32_t group = -1;
  int32_t groups = 0;
  while (!reader.accept("return")) {
    if (group == -1 && reader.accept("fused")) {
      reader.expect("{");
      group = groups++;
    } else if (group != -1 && reader.accept("}")) {
      group = -1;
      continue;
    }
    if (reader.accept("write")) {
      const ValueId value = read_id(reader);
      reader.expect("into");
      graph.writes.push_back({read_id(reader), value});
      continue;
    }
    Node node;
    node.group = group;
    node.runs_once = reader.accept("once");
    do {
      if (reader.accept("=")) break;  // an operator without results
      node.results.push_back(read_value(reader, graph));
    } while (reader.accept(","));
    if (!node.results.empty()) reader.expect("=");
    const std::string name = reader.word();
    node.op = dispatcher().find_or_null(name);
    if (node.op == nullptr) reader.fail("an operator");
    size_t i = 0;
    const std::vector<Argument>& arguments = node.op->schema().arguments;
    reader.list(
        [&] {
          if (i == arguments.size()) reader.fail("no more arguments");
          node.arguments.push_back(read_argument(reader, arguments[i++].type));
        },
        '(', ')');
    graph.nodes.push_back(std::move(node));
  }
  while (!reader.accept("}")) {
    graph.outputs.push_back(read_id(reader));
    (void)reader.accept(",");
  }
  reader.end();
  if (!graph.buffers.empty()) graph.buffers.resize(graph.values.size(), kOwnMemory);
  check(graph);
  return graph;
}

}  // namespace lockstep::compiler
