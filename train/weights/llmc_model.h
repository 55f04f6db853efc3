#pragma once

#include <filesystem>
#include <memory>

#include "nn/models/gpt2.h"

namespace lockstep::train {

/// Models of llm.c, a .bin file of GPT-2, little-endian: 256 words of int32, of which the first
/// eight are
///   magic 20240326; version: 3 for float32, 5 for bfloat16; positions T; vocabulary V; layers L;
///   heads; width C; padded vocabulary Vp, the rows that the token embedding has in the file;
/// then, without gaps, wte [Vp, C], wpe [T, C] and, of all L layers each before the next line,
///   ln_1 weight [C] and bias [C], attn.c_attn weight [3C, C] and bias, attn.c_proj weight [C, C]
///   and bias, ln_2 weight and bias, mlp.c_fc weight [4C, C] and bias, mlp.c_proj weight [C, 4C]
///   and bias,
/// then ln_f weight and bias. Weights are [out, in]; Hugging Face's GPT-2 has them transposed.

/// Whether `path` is a file that starts with the magic number. False if it cannot be read.
bool is_llmc_model(const std::filesystem::path& path);

/// Loads a model as float32, without dropout, in training mode; padding rows are dropped. Throws
/// CheckpointError naming the file, what was expected and what was found, for a file that cannot be
/// read, another magic or version, header values that are out of range or inconsistent, and a
/// length that does not match the header.
std::unique_ptr<nn::Gpt2> load_llmc_model(const std::filesystem::path& path);

/// Writes `model` with its vocabulary padded by rows of zeros to a multiple of 128; the file
/// appears atomically. Throws DTypeError for a `dtype` other than float32 and bfloat16; ConfigError
/// for a LayerNorm epsilon other than 1e-5, which llm.c hard-codes; CheckpointError naming path and
/// reason if writing fails.
void save_llmc_model(const nn::Gpt2& model, const std::filesystem::path& path,
                     DType dtype = DType::kF32);

}  // namespace lockstep::train
