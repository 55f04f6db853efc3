#include "tests/launcher/faults/recorded_disk.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

/// A file or folder: what the last sync made certain, and the changes since then, in order.
struct RecordedDisk::Node {
  /// A change of one name in a folder: `node` is what it names then, or null.
  struct Name {
    std::string name;
    Nodes node;
    size_t time = 0;
    size_t pair = 0;  ///< names with one number, not 0, change together
  };
  /// A change of a file's bytes; without bytes its size becomes `offset`.
  struct Write {
    int64_t offset = 0;
    std::string bytes;
    bool truncates = false;
    size_t time = 0;
  };

  bool is_folder = false;
  std::map<std::string, Nodes> names;  ///< as the program sees them
  std::map<std::string, Nodes> synced_names;
  std::vector<Name> new_names;
  std::string synced_bytes;
  std::vector<Write> new_writes;
};

namespace {

bool survives(std::mt19937& random) { return (random() & 1) != 0; }

template <class Write>
void write_into(std::string& bytes, const Write& write) {
  const auto offset = static_cast<size_t>(write.offset);
  if (write.truncates) {
    bytes.resize(offset);
    return;
  }
  bytes.resize(std::max(bytes.size(), offset + write.bytes.size()));
  bytes.replace(offset, write.bytes.size(), write.bytes);
}

template <class Names, class Change>
void rename_in(Names& names, const Change& change) {
  if (change.node) {
    names[change.name] = change.node;
  } else {
    names.erase(change.name);
  }
}

}  // namespace

std::vector<DiskChange> read_changes(const fs::path& record) {
  const std::string text = train::file_content(record);
  std::vector<DiskChange> changes;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    std::istringstream line(text.substr(at, end - at));
    DiskChange change;
    std::string offset;
    std::string size;
    std::getline(line, change.operation, '\t');
    std::getline(line, change.path, '\t');
    std::getline(line, change.other, '\t');
    std::getline(line, offset, '\t');
    std::getline(line, size, '\t');
    change.offset = std::stoll(offset);
    change.bytes = text.substr(end + 1, std::stoull(size));
    at = end + 1 + change.bytes.size();
    changes.push_back(std::move(change));
  }
  return changes;
}

RecordedDisk::RecordedDisk(fs::path root, DiskModel model)
    : root_(std::move(root)), model_(model), top_(std::make_shared<Node>()) {
  top_->is_folder = true;
}

RecordedDisk::~RecordedDisk() = default;

RecordedDisk::Nodes RecordedDisk::find(const fs::path& path) const {
  Nodes node = top_;
  for (const fs::path& part : path.lexically_relative(root_)) {
    if (part == ".") continue;
    const auto found = node->names.find(part.string());
    if (found == node->names.end()) return nullptr;
    node = found->second;
  }
  return node;
}

void RecordedDisk::change_name(const fs::path& path, const Nodes& node) {
  const Nodes folder = find(path.parent_path());
  Node::Name change{path.filename().string(), node, time_, 0};
  rename_in(folder->names, change);
  folder->new_names.push_back(std::move(change));
}

void RecordedDisk::apply(const DiskChange& change) {
  if (change.operation == "mkdir" && change.path == root_) return;
  const auto is = [&](const char* operation) { return change.operation == operation; };
  const bool names = is("create") || is("mkdir") || is("remove") || is("rename") || is("exchange");
  if (names) ++time_;
  const auto together = [&](const fs::path& path) {
    find(path.parent_path())->new_names.back().pair = time_;
  };
  if (is("create") || is("mkdir")) {
    auto node = std::make_shared<Node>();
    node->is_folder = is("mkdir");
    change_name(change.path, node);
  } else if (is("remove")) {
    change_name(change.path, nullptr);
  } else if (is("rename") || is("exchange")) {
    const Nodes moved = find(change.path);
    const Nodes replaced = is("exchange") ? find(change.other) : nullptr;
    change_name(change.other, moved);
    together(change.other);
    change_name(change.path, replaced);
    together(change.path);
  } else if (const Nodes node = find(change.path)) {
    if (is("fsync")) {
      for (const Node::Write& write : node->new_writes) write_into(node->synced_bytes, write);
      node->new_writes.clear();
      node->synced_names = node->names;
      node->new_names.clear();
      committed_ = time_;
    } else {
      node->new_writes.push_back({change.offset, change.bytes, is("truncate"), time_});
    }
  }
}

void RecordedDisk::write_out(const Node& node, const fs::path& destination, size_t journal,
                             std::mt19937& random) const {
  if (!node.is_folder) {
    std::string bytes = node.synced_bytes;
    for (const Node::Write& write : node.new_writes) {
      const bool ordered = model_ == DiskModel::kJournal && write.time < journal;
      if (ordered || survives(random)) write_into(bytes, write);
    }
    train::put_file(destination, bytes);
    return;
  }
  fs::create_directories(destination);
  std::map<std::string, Nodes> names = node.synced_names;
  std::map<size_t, bool> pairs;
  for (const Node::Name& change : node.new_names) {
    bool kept = change.time <= journal;
    if (model_ == DiskModel::kStrict) {
      kept = change.pair == 0 ? survives(random)
                              : pairs.try_emplace(change.pair, survives(random)).first->second;
    }
    if (kept) rename_in(names, change);
  }
  for (const auto& [name, child] : names) write_out(*child, destination / name, journal, random);
}

void RecordedDisk::cut_power(const fs::path& destination, std::mt19937& random) const {
  const size_t journal = std::uniform_int_distribution<size_t>(committed_, time_)(random);
  write_out(*top_, destination, journal, random);
}

}  // namespace lockstep::launcher
