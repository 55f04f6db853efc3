#include "configs/field_list.h"

#include <google/protobuf/descriptor.h>

#include <map>

#include "configs/field.h"
#include "configs/run.pb.h"

namespace lockstep::config {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

struct Entry {
  std::string path;
  std::vector<std::string> values;  ///< all accepted values, if they can be listed
  bool is_list = false;
};

void list(const Descriptor& type, const std::string& path, std::vector<Entry>& entries) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string field_path = join_path(path, field.name());
    if (!holds_fields(field)) {
      entries.push_back({field_path, value_names(field), field.is_repeated()});
    } else if (!lists_fields(field)) {  // whose elements only a file can add
      if (field.real_containing_oneof() != nullptr) entries.push_back({field_path, {"{}"}});
      list(*field.message_type(), field_path, entries);
    }
  }
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> kEntries = [] {
    std::vector<Entry> result;
    list(*RunConfig::descriptor(), "", result);
    return result;
  }();
  return kEntries;
}

}  // namespace

std::vector<std::string> field_paths() {
  std::vector<std::string> paths;
  for (const Entry& entry : entries()) paths.push_back(entry.path);
  return paths;
}

std::vector<std::string> completions(std::string_view prefix) {
  std::vector<std::string> found;
  const auto offer = [&](const Entry& entry, const char* sign) {
    const std::string path = entry.path + sign;
    if (path.starts_with(prefix) && path != prefix) {
      found.push_back(path);
    } else if (prefix.starts_with(path)) {
      for (const std::string& value : entry.values) {
        if ((path + value).starts_with(prefix)) found.push_back(path + value);
      }
    }
  };
  for (const Entry& entry : entries()) {
    offer(entry, "=");
    if (entry.is_list) offer(entry, "+=");
  }
  return found;
}

}  // namespace lockstep::config
