#include "train/run/shard_writing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folders.h"
#include "core/ops/factory/factory.h"
#include "dist/group/together.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;

/// Rank 0 may write for other ranks in between.
const dist::CollectiveOptions kNoHurry{.timeout = std::chrono::hours(24)};
constexpr int64_t kNoMore = -1;

std::vector<nn::StoredParameter> all_pieces(const StateShards& shards, int rank) {
  std::vector<nn::StoredParameter> pieces = shards.pieces(kWeightShards, rank);
  for (nn::StoredParameter& each : shards.pieces(kOptimizerShards, rank)) {
    pieces.push_back(std::move(each));
  }
  return pieces;
}

/// On a rank that does not see the folder: sends the pieces that rank 0 asks for, by number.
void send_pieces(dist::ProcessGroup& group, const StateShards& shards) {
  const std::vector<nn::StoredParameter> pieces = all_pieces(shards, group.rank());
  for (;;) {
    const Tensor wanted = empty({1}, DType::kI64);
    group.recv(wanted, 0, 0, kNoHurry).wait();
    const int64_t number = *wanted.data<int64_t>();
    if (number == kNoMore) return;
    group.send(pieces[static_cast<size_t>(number)].tensor.contiguous().to(kCPU), 0, 0, kNoHurry)
        .wait();
  }
}

/// On rank 0: writes the files of a rank that does not see the folder.
class RemotePieces {
 public:
  RemotePieces(dist::ProcessGroup& group, const StateShards& shards, int rank)
      : group_(group), shards_(shards), rank_(rank), pieces_(all_pieces(shards, rank)) {}

  FileDigests write(const fs::path& folder) const {
    return write_shard_files(folder, shards_, rank_, [this](size_t number) {
      ask(static_cast<int64_t>(number));
      const Tensor& piece = pieces_[number].tensor;
      Tensor values = empty(piece.sizes(), {piece.dtype(), kCPU});
      group_.recv(values, rank_, 0, kNoHurry).wait();
      return values;
    });
  }
  /// Lets the other rank go on, whether its files were written or not.
  void release() const { ask(kNoMore); }

 private:
  void ask(int64_t number) const {
    const Tensor wanted = full({1}, static_cast<double>(number), DType::kI64);
    group_.send(wanted, rank_, 0, kNoHurry).wait();
  }

  dist::ProcessGroup& group_;
  const StateShards& shards_;
  int rank_;
  std::vector<nn::StoredParameter> pieces_;
};

/// Rank 0 writes its own files and those of ranks that do not see the folder.
FileDigests write_for_others(dist::ProcessGroup* group, const fs::path& folder,
                             const StateShards& shards, const std::vector<std::string>& sees) {
  std::exception_ptr failure;
  FileDigests written;
  const auto attempt = [&](const auto& write) {
    if (failure) return;
    try {
      written.merge(write());
    } catch (const DistError&) {
      throw;
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
  };
  attempt([&] { return write_shard_files(folder, shards, 0); });
  for (int rank = 1; rank < shards.world(); ++rank) {
    if (!sees[static_cast<size_t>(rank)].empty()) continue;
    const RemotePieces pieces(*group, shards, rank);
    attempt([&] { return pieces.write(folder); });
    pieces.release();
  }
  if (failure) std::rethrow_exception(failure);
  return written;
}

FileDigests all_digests(const std::vector<std::string>& texts) {
  FileDigests all;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    all.merge(digests_of(texts[rank], fmt::format("rank {}", rank)));
  }
  return all;
}

/// A name that no other file has: a folder of the same path on another host lacks it.
std::string unlikely_name() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return fmt::format("shared-{}-{}", ::getpid(), now);
}

}  // namespace

FileDigests write_shard_files(const fs::path& folder, const StateShards& shards, int rank,
                              const std::function<Tensor(size_t)>& values) {
  FileDigests written;
  size_t before = 0;
  for (const std::string_view what : {kWeightShards, kOptimizerShards}) {
    const std::vector<nn::StoredParameter> pieces = shards.pieces(what, rank);
    if (pieces.empty()) continue;
    std::function<Tensor(size_t)> of_these;
    if (values) of_these = [&](size_t number) { return values(before + number); };
    const std::string file = shard_file(what, rank, shards.world());
    written[file] = save_tensors(folder / file, pieces, {}, of_these);
    before += pieces.size();
  }
  return written;
}

std::string text_of(const FileDigests& digests) {
  return nlohmann::ordered_json{{"files", json_of(digests)}}.dump();
}

FileDigests digests_of(const std::string& text, const std::string& origin) {
  return file_digests_of(parse_ordered_json(text), origin);
}

fs::path write_shards(dist::ProcessGroup* group, const fs::path& folder,
                      const CheckpointRecord* record, const StateShards& shards,
                      const std::function<void()>& then) {
  const bool leads = shards.rank() == 0;
  std::optional<PartialCheckpoint> partial;
  fs::path probe;
  probe = dist::together(group, [&]() -> std::string {
            if (!leads) return "";
            partial.emplace(folder, record->step());
            const fs::path name = fs::absolute(partial->path()) / unlikely_name();
            write_text(name, "");
            return name.string();
          }).front();
  const fs::path shared = probe.parent_path();
  const std::vector<std::string> sees = dist::together(group, [&]() -> std::string {
    std::error_code ignored;
    return fs::exists(probe, ignored) ? "yes" : "";
  });
  const std::vector<std::string> written = dist::together(group, [&] {
    if (leads) return text_of(write_for_others(group, shared, shards, sees));
    if (!sees[static_cast<size_t>(shards.rank())].empty()) {
      return text_of(write_shard_files(shared, shards, shards.rank()));
    }
    send_pieces(*group, shards);
    return text_of({});
  });
  return dist::together(group,
                        [&]() -> std::string {
                          if (!leads) return "";
                          std::error_code failed;
                          fs::remove(probe, failed);
                          LS_CHECK(!failed, DataError, "[checkpoint] {} cannot be removed: {}.",
                                   probe.string(), failed.message());
                          CheckpointManifest manifest = record->manifest;
                          manifest.format_version = kShardedManifestVersion;
                          manifest.files = all_digests(written);
                          manifest.shards = shards.index();
                          describe_checkpoint(*record, partial->path());
                          const fs::path path = partial->publish(std::move(manifest));
                          if (then) then();
                          return path.string();
                        })
      .front();
}

}  // namespace lockstep::train
