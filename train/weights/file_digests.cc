#include "train/weights/file_digests.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folders.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "train/weights/read_errors.h"

namespace lockstep::train {

namespace {

using OrderedJson = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::string_view kModelFormat = "lockstep model";

std::string manifest_text(const fs::path& path) {
  return reading([&] { return read_whole_file(path, kMostJsonBytes); });
}

}  // namespace

FileDigest digest_of_file(const fs::path& path) {
  return reading([&] {
    // A link that leads nowhere is a name that exists; its file may be on a disk that is missing.
    LS_CHECK(name_exists(path), CheckpointError, "[checkpoint] {}: the file is missing.",
             path.string());
    if (path.extension() == ".safetensors") return digest_of(path);
    const std::vector<std::byte> bytes = read_whole_bytes(path);
    return FileDigest{.bytes = bytes.size(), .header = ContentHasher().add(bytes).result()};
  });
}

void write_model_manifest(const fs::path& folder, int64_t step, const FileDigests& files) {
  OrderedJson json;
  json["format"] = kModelFormat;
  json["format_version"] = 1;
  json["lockstep_version"] = LOCKSTEP_VERSION;
  json["step"] = step;
  json["files"] = json_of(files);
  write_text(folder / kModelManifest, sealed(json.dump(1)));
}

FileDigests digests_in(const fs::path& folder) {
  const fs::path of_model = folder / kModelManifest;
  const fs::path of_checkpoint = folder / kCheckpointManifest;
  const auto read = [](const fs::path& path, std::string_view format) {
    const std::string text = manifest_text(path);
    FileDigests hashes;
    const OrderedJson json = checked_manifest(text, format, path.string(), &hashes);
    return file_digests_of(json, path.string(), std::move(hashes));
  };
  const auto there = [](const fs::path& path) {
    return reading([&] { return name_exists(path); });
  };
  if (there(of_checkpoint)) return read(of_checkpoint, kCheckpointFormat);
  if (there(of_model)) return read(of_model, kModelFormat);
  return {};
}

std::optional<int64_t> model_step_in(const fs::path& folder) {
  const fs::path path = folder / kModelManifest;
  if (!reading([&] { return name_exists(path); })) return std::nullopt;
  const OrderedJson json = checked_manifest(manifest_text(path), kModelFormat, path.string());
  const OrderedJson step = json.value("step", OrderedJson());
  return step.is_number_integer() ? std::optional(step.get<int64_t>()) : std::nullopt;
}

void check_file(const fs::path& path) {
  const FileDigests files = digests_in(path.parent_path());
  const auto written = files.find(path.filename().string());
  if (written != files.end()) check_digest(path, written->second, digest_of_file(path));
}

void check_files_beside_weights(const fs::path& folder) {
  for (const auto& [name, digest] : digests_in(folder)) {
    const fs::path path = folder / name;
    if (path.extension() != ".safetensors") check_digest(path, digest, digest_of_file(path));
  }
}

void check_file(const fs::path& path, const SafetensorsFile& read, const FileDigests* written) {
  const FileDigests read_now = written == nullptr ? digests_in(path.parent_path()) : FileDigests();
  const FileDigests& files = written == nullptr ? read_now : *written;
  const auto found = files.find(path.filename().string());
  if (found != files.end()) check_digest(path, found->second, digest_of(read));
}

}  // namespace lockstep::train
