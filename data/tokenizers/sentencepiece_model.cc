#include "data/tokenizers/sentencepiece_model.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/utf8.h"
#include "data/tokenizers/sentencepiece_model.pb.h"

namespace lockstep::train {
namespace {

using sentencepiece::Model;
using sentencepiece::Piece;

void check_kind(const Model& model, const std::string& file) {
  const auto refuse = [&](bool wrong, std::string_view what) {
    LS_CHECK(
        !wrong, DataError,
        "[tokenizer] {}: {}: expected a SentencePiece model of the BPE kind with byte fallback "
        "and without replacement rules. Train one with --tokenizer sentencepiece.",
        file, what);
  };
  refuse(model.pieces().empty(), "it holds no pieces");
  refuse(model.trainer().kind() != sentencepiece::Trainer::BPE, "its kind is not BPE");
  refuse(!model.trainer().byte_fallback(), "it has no byte fallback");
  refuse(model.trainer().whitespace_as_suffix(), "spaces end its pieces instead of starting them");
  const sentencepiece::Normalizer& normalizer = model.normalizer();
  refuse(!normalizer.charsmap().empty(), "it replaces characters");
  refuse(!normalizer.has_remove_extra_whitespaces() || normalizer.remove_extra_whitespaces(),
         "it removes spaces");
  refuse(normalizer.has_escape_whitespaces() && !normalizer.escape_whitespaces(),
         "it does not mark spaces");
}

Piece::Type type_of(const Piece& piece) { return piece.has_type() ? piece.type() : Piece::NORMAL; }

/// Returns 0x41 for "<0x41>"; -1 if `text` does not have this form.
int byte_of(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const size_t high = kDigits.find(text[3]), low = kDigits.find(text[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return -1;
  return static_cast<int>(high * 16 + low);
}

std::string with_spaces(std::string_view marked) {
  std::string text;
  for (size_t at = 0; at < marked.size();) {
    const bool mark = marked.substr(at).starts_with(kSpaceMark);
    text += mark ? ' ' : marked[at];
    at += mark ? kSpaceMark.size() : 1;
  }
  return text;
}

bool mark_inside(std::string_view marked) {
  while (marked.starts_with(kSpaceMark)) marked.remove_prefix(kSpaceMark.size());
  return marked.find(kSpaceMark) != std::string_view::npos;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (!point.valid) return false;
    at += static_cast<size_t>(point.length);
  }
  return true;
}

/// Ranks of the pieces by score: 0 for the highest; equal scores share a rank.
std::vector<uint32_t> ranks_of(const Model& model) {
  std::vector<float> scores;
  for (const Piece& piece : model.pieces()) scores.push_back(piece.score());
  std::ranges::sort(scores, std::greater<>());
  std::vector<uint32_t> ranks;
  for (const Piece& piece : model.pieces()) {
    const auto place = std::ranges::lower_bound(scores, piece.score(), std::greater<>());
    ranks.push_back(static_cast<uint32_t>(place - scores.begin()));
  }
  return ranks;
}

class Reader {
 public:
  Reader(const Model& model, const std::string& file) : model_(model), file_(file) {}

  SentencePieceModel read() {
    check_kind(model_, file_);
    for (const Piece& piece : model_.pieces()) {
      check(std::isfinite(piece.score()), "has a score that is not finite");
      ++id_;
    }
    const std::vector<uint32_t> ranks = ranks_of(model_);
    for (id_ = 0; id_ < model_.pieces_size(); ++id_) {
      add(model_.pieces(id_), ranks[static_cast<size_t>(id_)]);
    }
    LS_CHECK(std::ranges::count(has_byte_, true) == 256, DataError,
             "[tokenizer] {}: expected a piece for each of the 256 bytes, got {}.", file_,
             std::ranges::count(has_byte_, true));
    const int end = model_.trainer().has_eos_id() ? model_.trainer().eos_id() : 2;
    if (end >= 0 && end < model_.pieces_size()) result_.end_of_text = static_cast<uint32_t>(end);
    const int begin = model_.trainer().has_bos_id() ? model_.trainer().bos_id() : 1;
    if (begin >= 0 && begin < model_.pieces_size()) {
      result_.begin_of_text = static_cast<uint32_t>(begin);
    }
    const sentencepiece::Normalizer& normalizer = model_.normalizer();
    result_.add_dummy_prefix = !normalizer.has_add_dummy_prefix() || normalizer.add_dummy_prefix();
    return std::move(result_);
  }

 private:
  void check(bool good, std::string_view problem) const {
    LS_CHECK(good, DataError, "[tokenizer] {}: piece {} {}.", file_, id_, problem);
  }

  void add(const Piece& piece, uint32_t rank) {
    const std::string& text = piece.text();
    const auto id = static_cast<uint32_t>(id_);
    switch (type_of(piece)) {
      case Piece::NORMAL:
        check(!text.empty() && is_utf8(text), "is no UTF-8 text");
        check(result_.pieces.emplace(text, Merge{rank, id}).second, "stands there a second time");
        if (mark_inside(text)) result_.words_are_separate = false;
        if (text.find('\n') != std::string::npos) result_.lines_are_separate = false;
        result_.tokens.push_back(with_spaces(text));
        break;
      case Piece::BYTE: {
        const int byte = byte_of(text);
        check(byte >= 0 && !has_byte_[static_cast<size_t>(byte)], "is no new byte <0x..>");
        has_byte_[static_cast<size_t>(byte)] = true;
        result_.byte_tokens[static_cast<size_t>(byte)] = id;
        result_.tokens.emplace_back(1, static_cast<char>(byte));
        break;
      }
      case Piece::UNKNOWN:
      case Piece::CONTROL:
        result_.tokens.emplace_back();
        break;
      default:
        check(false, "is user-defined or unused, which is not supported");
    }
  }

  const Model& model_;
  const std::string& file_;
  int id_ = 0;
  std::array<bool, 256> has_byte_{};
  SentencePieceModel result_;
};

}  // namespace

SentencePieceModel parse_sentencepiece(std::string_view bytes, const std::string& file) {
  Model model;
  const bool parsed = bytes.size() < (size_t{1} << 31) &&
                      model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  LS_CHECK(
      parsed, DataError,
      "[tokenizer] {}: expected a SentencePiece model, but its {} bytes cannot be read as one. "
      "Is the file damaged?",
      file, bytes.size());
  return Reader(model, file).read();
}

}  // namespace lockstep::train
