#include "train/weights/manifest_text.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "train/weights/read_errors.h"

namespace lockstep::train {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kHashMember = ",\n \"hash\": \"";
constexpr std::string_view kEnd = "\"\n}\n";

ContentHash hash_of(std::string_view text) { return ContentHasher().add(text).result(); }

OrderedJson to_json(const FileDigest& digest) {
  OrderedJson json = {{"bytes", digest.bytes}, {"header", digest.header.hex()}};
  if (digest.tensors.empty()) return json;
  // operator[] would compare a name with all before it; names in a map differ.
  auto& tensors = (json["tensors"] = OrderedJson::object()).get_ref<OrderedJson::object_t&>();
  for (const auto& [name, hash] : digest.tensors) tensors.emplace_back(name, hash.hex());
  return json;
}

/// The hash of 32 hexadecimal digits; nothing for any other text.
std::optional<ContentHash> hash_in(std::string_view text) {
  ContentHash hash;
  const auto read = [&](size_t begin, uint64_t& word) {
    const char* first = text.data() + begin;
    const auto result = std::from_chars(first, first + 16, word, 16);
    return result.ec == std::errc{} && result.ptr == first + 16;
  };
  const bool whole = text.size() == 32 && read(0, hash.high) && read(16, hash.low);
  return whole ? std::optional(hash) : std::nullopt;
}

/// Adds what `json` says of a file to `digest`, which may hold hashes of its tensors.
FileDigest digest_from(const OrderedJson& json, FileDigest digest) {
  const OrderedJson& bytes = json.at("bytes");
  if (!bytes.is_number_unsigned()) throw std::invalid_argument("bytes: expected a whole number");
  digest.bytes = bytes.get<uint64_t>();
  digest.header = parse_hex(json.at("header").get<std::string>());
  if (!json.contains("tensors")) return digest;
  for (const auto& [name, hash] : json["tensors"].items()) {
    digest.tensors.insert_or_assign(digest.tensors.end(), name, parse_hex(hash.get<std::string>()));
  }
  return digest;
}

bool is_format(const OrderedJson& json, std::string_view format) {
  return json.is_object() &&
         json.value("format", OrderedJson()) == OrderedJson(std::string(format));
}

/// The document; null for a text that is not JSON, such as a damaged one.
OrderedJson document_of(std::string_view text, FileDigests* hashes) {
  const auto take = [&](std::span<const std::string> names, std::string_view value) {
    if (hashes == nullptr || names.size() != 4 || names[0] != "files" || names[2] != "tensors")
      return false;
    const std::optional<ContentHash> hash = hash_in(value);
    if (!hash) return false;
    auto& tensors = (*hashes)[names[1]].tensors;
    tensors.insert_or_assign(tensors.end(), names[3], *hash);  // they are written in order
    return true;
  };
  try {
    return parse_ordered_json(text, take);
  } catch (const JsonSyntaxError&) {
    return nullptr;
  }
}

/// The newest version of a format that this program reads.
int64_t newest_version(std::string_view format) {
  return format == kCheckpointFormat ? kManifestVersion : 1;
}

/// Throws NewerVersionError if the document says that it is a later version of `format`.
void check_version(const OrderedJson& json, std::string_view format, std::string_view origin) {
  if (!is_format(json, format)) return;
  const OrderedJson version = json.value("format_version", OrderedJson());
  if (!version.is_number_integer() || version <= newest_version(format)) return;
  const OrderedJson writer = json.value("lockstep_version", OrderedJson());
  throw NewerVersionError(fmt::format(
      "[checkpoint] {}: format version {} is newer than this program's {}. Use the Lockstep that "
      "wrote it, {}.",
      origin, version.dump(), newest_version(format),
      writer.is_string() ? writer.get<std::string>() : "unknown"));
}

}  // namespace

std::string sealed(std::string object) {
  object.resize(object.rfind('\n'));  // drops the closing brace: the hash follows as last member
  return object + std::string(kHashMember) + hash_of(object).hex() + std::string(kEnd);
}

OrderedJson checked_manifest(std::string_view text, std::string_view format,
                             std::string_view origin, FileDigests* hashes) {
  OrderedJson json;
  try {
    json = document_of(text, hashes);
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("[checkpoint] {}: {}", origin, error.what()));
  }
  check_version(json, format, origin);
  const size_t body = text.rfind(kHashMember);
  const bool ends = body != text.npos && text.ends_with(kEnd) &&
                    text.size() == body + kHashMember.size() + 32 + kEnd.size();
  LS_CHECK(
      ends && text.substr(body + kHashMember.size(), 32) == hash_of(text.substr(0, body)).hex(),
      CheckpointError, "[checkpoint] {}: not what was written. The file is damaged.", origin);
  LS_CHECK(is_format(json, format), CheckpointError, "[checkpoint] {}: expected a \"{}\".", origin,
           format);
  return json;
}

OrderedJson json_of(const FileDigests& files) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [name, digest] : files) json[name] = to_json(digest);
  return json;
}

FileDigests file_digests_of(const OrderedJson& manifest, std::string_view origin,
                            FileDigests hashes) {
  try {
    FileDigests files;
    for (const auto& [name, file] : manifest.at("files").items()) {
      if (!is_file_name(name)) {
        throw std::invalid_argument(fmt::format(
            "\"files\" names {:?}: expected the name of a file beside the manifest", name));
      }
      files[name] = digest_from(file, std::move(hashes[name]));
    }
    return files;
  } catch (const std::exception& error) {
    throw CheckpointError(fmt::format("[checkpoint] {}: {}.", origin, error.what()));
  }
}

ContentHash parse_hex(const std::string& text) {
  if (const std::optional<ContentHash> hash = hash_in(text)) return *hash;
  throw std::invalid_argument("a hash of 32 hexadecimal digits expected, got \"" + text + "\"");
}

}  // namespace lockstep::train
