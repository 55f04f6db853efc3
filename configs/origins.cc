#include "configs/origins.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <utility>

#include "configs/field.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;

/// Whether all messages on `path` exist.
bool is_reachable(const pb::Message& root, std::string_view path) {
  const pb::Message* message = &root;
  for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.')) {
    const PathStep step = parse_step(path.substr(0, dot));
    const pb::FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(step.name);
    if (field == nullptr) return false;
    const pb::Reflection& reflection = *message->GetReflection();
    if (field->is_repeated()) {
      if (!step.index || *step.index >= reflection.FieldSize(*message, field)) return false;
      message = &reflection.GetRepeatedMessage(*message, field, *step.index);
    } else {
      if (!reflection.HasField(*message, field)) return false;
      message = &reflection.GetMessage(*message, field);
    }
    path.remove_prefix(dot + 1);
  }
  return true;
}

}  // namespace

bool is_written(std::string_view origin) {
  return origin != kDefaultOrigin && !origin.starts_with(kChosenOrigin);
}

void fail(const Origins& origins, std::string path, std::string problem) {
  while (true) {
    const auto found = origins.find(path);
    if (found != origins.end() && is_written(found->second)) {
      throw SourceError(found->second, std::move(problem));
    }
    if (path.empty()) throw SourceError("", std::move(problem));
    const size_t dot = path.rfind('.');
    path.resize(dot == std::string::npos ? 0 : dot);
  }
}

bool is_set(const pb::Message& message, const pb::FieldDescriptor& field, const std::string& path,
            const Origins& origins) {
  const pb::Reflection& reflection = *message.GetReflection();
  if (!field.is_repeated()) return reflection.HasField(message, &field);
  return reflection.FieldSize(message, &field) > 0 || origins.contains(path);
}

void forget_dropped(const pb::Message& config, Origins& origins) {
  std::erase_if(origins, [&](const auto& entry) { return !is_reachable(config, entry.first); });
}

}  // namespace lockstep::config
