#include "dist/group/peer_note.h"

#include <array>
#include <bit>
#include <cstring>

namespace lockstep::dist {
namespace {

constexpr uint64_t kQuestion = 'Q';
constexpr uint64_t kAnswer = 'A';

template <size_t N>
std::string text_of(const std::array<uint64_t, N>& words) {
  return {reinterpret_cast<const char*>(words.data()), sizeof words};
}

template <size_t N>
std::optional<std::array<uint64_t, N>> words_of(const std::string& text, uint64_t kind) {
  std::array<uint64_t, N> words;
  if (text.size() != sizeof words) return std::nullopt;
  std::memcpy(words.data(), text.data(), sizeof words);
  if (words[0] != kind) return std::nullopt;
  return words;
}

}  // namespace

std::string encode(const Question& question) {
  const Signature& s = question.signature;
  return text_of(std::array<uint64_t, 11>{
      kQuestion, s.group, s.sequence, static_cast<uint64_t>(s.kind), static_cast<uint64_t>(s.dtype),
      static_cast<uint64_t>(s.reduction.op), std::bit_cast<uint64_t>(s.reduction.factor),
      static_cast<uint64_t>(s.root), static_cast<uint64_t>(s.count),
      static_cast<uint64_t>(s.reduction.leaves), s.deal});
}

std::string encode(const Answer& answer) {
  return text_of(std::array<uint64_t, 6>{kAnswer, answer.group, answer.sequence,
                                         static_cast<uint64_t>(answer.where), answer.called,
                                         answer.awaited});
}

std::optional<Question> decode_question(const std::string& text) {
  const auto words = words_of<11>(text, kQuestion);
  if (!words || (*words)[3] > static_cast<uint64_t>(OpKind::kReceive) ||
      (*words)[4] >= kDTypeCount ||
      (*words)[5] > static_cast<uint64_t>(ReduceOp::kPremultipliedSum)) {
    return std::nullopt;
  }
  Question question;
  Signature& s = question.signature;
  s.group = (*words)[1];
  s.sequence = (*words)[2];
  s.kind = static_cast<OpKind>((*words)[3]);
  s.dtype = static_cast<DType>((*words)[4]);
  s.reduction.op = static_cast<ReduceOp>((*words)[5]);
  s.reduction.factor = std::bit_cast<double>((*words)[6]);
  s.root = static_cast<int>((*words)[7]);
  s.count = static_cast<int64_t>((*words)[8]);
  s.reduction.leaves = static_cast<int32_t>((*words)[9]);
  s.deal = (*words)[10];
  return question;
}

std::optional<Answer> decode_answer(const std::string& text) {
  const auto words = words_of<6>(text, kAnswer);
  if (!words || (*words)[3] > static_cast<uint64_t>(Answer::Where::kDone)) return std::nullopt;
  return Answer{(*words)[1], (*words)[2], static_cast<Answer::Where>((*words)[3]), (*words)[4],
                (*words)[5]};
}

}  // namespace lockstep::dist
