"""Writes tokenizers in Hugging Face's format and the ids that the package `tokenizers` gives for random texts:

    python3 tests/data/tokenizers/record_tokenizers.py OUT TEXTS SEED

tests/data/tokenizers/recorded_tokenizers.json was made with 60 texts and the seed 1, by tokenizers 0.23.3. OUT has
an object for each tokenizer: its name, tokenizer.json, and lists of text, ids with special tokens as text, and ids
with special tokens.
"""

import json
import random
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
WORDS = [
    "the", "people", "of", "a", "boat's", "we'll", "WE'LL", "I'M", "it'\u017f", "12345", "3.14", "\n", "\n\n", "\r\n",
    "\t", "  ", "  x", " \n ", "caf\u00e9", "\u65e5\u672c\u8a9e", "\u0440\u0443\u0441", "!?", "...\n\n", "\u00a0",
    "\u2028", "\u0085", "\U0001f600", "\u0661\u0662", "e\u0301", "\x0b", "(z)", "stream", "streams", "'", "''s", "\u2581",
    "<|end_of_text|>", "<|pad|>", " <mask> ", "<tool>", "<tool>>", "</s>", "<s>", "\u00bd", "_id", "-", "\u0000",
]


def random_text(source):
    text = ""
    for i in range(source.randrange(1, 13)):
        if i > 0 and source.randrange(3) != 0:
            text += " "
        kind = source.randrange(12)
        if kind == 0:
            # Scripts whose letters and numbers are the same in all versions of Unicode of the last years.
            text += chr(source.randrange(0x21, 0x530))
        elif kind == 1:
            text += chr(source.choice([0x4E00 + source.randrange(5000), 0x1F300 + source.randrange(200)]))
        else:
            text += source.choice(WORDS)
    return text


def training_texts():
    source = random.Random(0)
    for _ in range(300):
        yield random_text(source)
    for _ in range(30):
        yield "row, row, row your boat gently down the stream; merrily, merrily, life is but a dream.\n"


def with_added(tokenizer):
    """The tokenizer of a file with added tokens of all kinds."""
    tokenizer.add_special_tokens([
        AddedToken("<|end_of_text|>", special=True, normalized=False),
        AddedToken("<|pad|>", special=True, normalized=True),
        AddedToken("<mask>", special=True, normalized=False, lstrip=True, rstrip=True),
    ])
    tokenizer.add_tokens([
        AddedToken("<tool>", special=False, normalized=False),
        AddedToken("<tool>>", special=False, normalized=True),
        AddedToken("  x", special=False, normalized=True, rstrip=True),
    ])
    return tokenizer


def byte_level(split, ignore_merges, vocab_size, normalizer=None):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    if split is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(split), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(training_texts(), trainer)
    if ignore_merges:
        # As in Llama 3's file, some tokens cannot be reached by merges.
        document = json.loads(tokenizer.to_str())
        for word in ["dream", "\u0120people"]:
            document["model"]["vocab"].setdefault(word, len(document["model"]["vocab"]))
        tokenizer = Tokenizer.from_str(json.dumps(document))
    return with_added(tokenizer)


def byte_fallback(metaspace, vocab_size):
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Replace(" ", "\u2581")
    trained.pre_tokenizer = pre_tokenizers.Split("\u2581", behavior="merged_with_next")
    trained.train_from_iterator((text.replace("\u65e5", "") for text in training_texts()),
                                trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False, limit_alphabet=60))
    model = json.loads(trained.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokens += sorted((token for token in model["vocab"]), key=model["vocab"].get)
    tokens = list(dict.fromkeys(tokens))
    tokenizer = Tokenizer(models.BPE(
        vocab={token: id for id, token in enumerate(tokens)}, merges=[tuple(merge) for merge in model["merges"]],
        unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if metaspace:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme=metaspace, split=False)
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in tokens[:3]])
    return with_added(tokenizer)


def record(name, tokenizer, texts):
    tokenizer.encode_special_tokens = True
    plain = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    tokenizer.encode_special_tokens = False
    special = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    return {"name": name, "tokenizer": json.loads(tokenizer.to_str()),
            "texts": [list(each) for each in zip(texts, plain, special)]}


def main():
    source = random.Random(int(sys.argv[3]))
    made = [
        ("gpt2", byte_level(None, False, 330)),
        ("llama3", byte_level(LLAMA3, True, 330)),
        ("qwen2", byte_level(QWEN2, False, 300)),
        ("llama2", byte_fallback(None, 200)),
        ("metaspace_first", byte_fallback("first", 120)),
        ("metaspace_always", byte_fallback("always", 120)),
    ]
    recorded = [record(name, tokenizer, [random_text(source) for _ in range(int(sys.argv[2]))])
                for name, tokenizer in made]
    nfc = byte_level(QWEN2, False, 300, normalizers.NFC())
    nfc.add_tokens([AddedToken("cafe\u0301", special=False, normalized=True)])
    texts = [unicodedata.normalize("NFD", random_text(source)) for _ in range(int(sys.argv[2]))]
    recorded.append(record("qwen2_nfc", nfc, texts))
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(each, separators=(",", ":")) for each in recorded) + "\n]\n")


main()
