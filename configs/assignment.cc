#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/field.h"
#include "configs/list_value.h"
#include "configs/load.h"
#include "configs/message.h"
#include "configs/options.pb.h"
#include "configs/origins.h"
#include "configs/run.pb.h"
#include "core/base/check.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;

/// The parts of "train.steps=100" or "model.resnet.blocks+=2".
struct Assignment {
  std::string_view path;
  std::string_view value;
  bool appends = false;
};

Assignment parse_assignment(std::string_view text, const std::string& where) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    throw SourceError(where, "expected path=value, as in --set train.steps=100.");
  }
  const bool appends = equals > 0 && text[equals - 1] == '+';
  return {text.substr(0, equals - (appends ? 1 : 0)), text.substr(equals + 1), appends};
}

const char* content(const pb::FieldDescriptor& field) {
  if (holds_fields(field)) return "fields";
  return field.is_repeated() ? "a list" : "one value";
}

/// The field that a path leads to.
struct Target {
  pb::Message* message;
  const pb::FieldDescriptor* field = nullptr;
  std::string path;
  std::vector<std::string> chosen;  ///< paths of messages that did not exist before

  void enter() {
    const pb::Reflection& reflection = *message->GetReflection();
    if (!reflection.HasField(*message, field)) chosen.push_back(path);
    message = reflection.MutableMessage(message, field);
  }
};

/// Enters the element of a list of messages, which must be there.
void enter_element(Target& target, std::optional<int> index, bool is_last,
                   const std::string& where) {
  const pb::Reflection& reflection = *target.message->GetReflection();
  const int size = reflection.FieldSize(*target.message, target.field);
  if (is_last || !index || *index >= size) {
    throw SourceError(
        where,
        fmt::format("{} is a list of {}, each with fields: expected a field of one that a file "
                    "sets, as in {}[0].FIELD=VALUE.",
                    target.path, size, target.path));
  }
  target.path = value_path(target.path, *index);
  target.message = reflection.MutableRepeatedMessage(target.message, target.field, *index);
}

Target follow(pb::Message& root, std::string_view rest, const std::string& where) {
  Target target{.message = &root};
  while (true) {
    const size_t dot = rest.find('.');
    const auto [name, index] = parse_step(rest.substr(0, dot));
    const pb::Descriptor& type = *target.message->GetDescriptor();
    target.field = type.FindFieldByName(name);
    if (target.field == nullptr) {
      throw SourceError(where, unknown_field(target.path, type, name));
    }
    target.path = join_path(target.path, name);
    if (lists_fields(*target.field)) {
      enter_element(target, index, dot == std::string_view::npos, where);
      rest.remove_prefix(dot + 1);
      continue;
    }
    if (dot == std::string_view::npos) return target;
    if (!holds_fields(*target.field)) {
      throw SourceError(where, fmt::format("{} holds {}, it has no fields.", target.path,
                                           content(*target.field)));
    }
    target.enter();
    rest.remove_prefix(dot + 1);
  }
}

/// Stores the value in a scalar field or a list. Returns a description of the error, or "".
std::string store(pb::Message& message, const pb::FieldDescriptor& field, const std::string& path,
                  const Assignment& assignment, const Origins& origins) {
  const std::string_view value = assignment.value;
  if (!field.is_repeated()) {
    if (assign(message, field, value)) return {};
    return wrong_value(path, field, value.empty() ? "empty" : value);
  }
  if (!assignment.appends) return assign_list(message, field, path, value, ListChange::kReplace);
  if (!is_set(message, field, path, origins)) {
    const std::string& start = field.options().GetExtension(default_value);
    LS_ASSERT(start.empty() ||
              assign_list(message, field, path, start, ListChange::kReplace).empty());
  }
  return assign_list(message, field, path, value, ListChange::kAppend);
}

}  // namespace

void set_value(RunConfig& config, Origins& origins, std::string_view assignment) {
  set_value(config, origins, assignment, fmt::format("--set {}", assignment));
}

void set_value(RunConfig& config, Origins& origins, std::string_view assignment,
               const std::string& where) {
  set_message_value(config, origins, assignment, where);
}

void set_message_value(pb::Message& config, Origins& origins, std::string_view assignment,
                       const std::string& where) {
  const Assignment parts = parse_assignment(assignment, where);
  // Works on a copy, so that an error in the path or value leaves the config unchanged.
  const std::unique_ptr<pb::Message> changed(config.New());
  changed->CopyFrom(config);
  Target target = follow(*changed, parts.path, where);
  const pb::FieldDescriptor& field = *target.field;
  const std::string& path = target.path;
  std::string problem;
  if (parts.appends && !field.is_repeated()) {
    problem = fmt::format("{} holds {}: += appends to lists only. Use =.", path, content(field));
  } else if (!holds_fields(field)) {
    problem = store(*target.message, field, path, parts, origins);
  } else if (parts.value == "{}") {
    target.enter();
  } else {
    problem = fmt::format(
        "{} holds fields: set one of them, as in {}.FIELD=VALUE, or choose it with {}={{}}.", path,
        path, path);
  }
  if (!problem.empty()) throw SourceError(where, std::move(problem));
  config.GetReflection()->Swap(&config, changed.get());
  origins[path] = where;
  for (const std::string& message : target.chosen) origins[message] = where;
  forget_dropped(config, origins);
}

}  // namespace lockstep::config
