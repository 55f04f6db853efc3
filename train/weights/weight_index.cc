#include "train/weights/weight_index.h"

#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"

namespace lockstep::train {

namespace {

using Json = nlohmann::json;

Json parsed(std::string_view text, std::string_view origin) {
  try {
    return parse_json(text);
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("[weights] {}: {}", origin, error.what()));
  }
}

}  // namespace

std::map<std::string, std::string> parse_weight_index(std::string_view text,
                                                      std::string_view origin) {
  const Json index = parsed(text, origin);
  LS_CHECK(index.is_object() && index.contains("weight_map") && index["weight_map"].is_object(),
           CheckpointError,
           "[weights] {}: expected an object with a \"weight_map\" from tensors to files. Is this "
           "the index of a sharded model?",
           origin);
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    LS_CHECK(file.is_string(), CheckpointError,
             "[weights] {}: expected the name of a file for tensor \"{}\", got {}.", origin, tensor,
             file.dump());
    const std::string name = file.get<std::string>();
    LS_CHECK(is_file_name(name), CheckpointError,
             "[weights] {}: tensor \"{}\" lies in {:?}: expected the name of a file beside the "
             "index.",
             origin, tensor, name);
    files[tensor] = name;
  }
  return files;
}

}  // namespace lockstep::train
