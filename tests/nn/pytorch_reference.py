"""Records what PyTorch's modules compute, for tests/nn/pytorch_*_test.cc.

Usage: python tests/nn/pytorch_reference.py [FILE], with PyTorch 2.15; FILE defaults to
pytorch_reference.safetensors beside this script. For each case NAME the file holds

  NAME/in.I           the inputs
  NAME/state.P        parameters and buffers before the call
  NAME/out.I          the results of the call
  NAME/grad.in.I      gradients of the inputs, for the loss sum(out.0^2) / 2
  NAME/grad.state.P   gradients of the parameters
  NAME/after.B        buffers after the call
"""

import json
import pathlib
import struct
import sys

import torch
from torch import nn

DTYPES = {torch.float32: "F32", torch.int64: "I64", torch.bool: "BOOL"}


def bytes_of(tensor):
    kind = {"F32": "f", "I64": "q", "BOOL": "?"}[DTYPES[tensor.dtype]]
    values = tensor.flatten().tolist()
    return struct.pack(f"<{len(values)}{kind}", *values)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name in sorted(tensors, key=lambda name: (-tensors[name].element_size(), name)):
        tensor = tensors[name].detach().contiguous()
        blob = bytes_of(tensor)
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def record(found, name, module, inputs, call=None, training=True):
    """Runs a case; `call(module, *inputs)` defaults to module(*inputs)."""
    module.train(training)
    with torch.no_grad():
        for tensor in module.parameters():
            tensor += torch.randn(tensor.shape) * 0.1
        for key, tensor in module.named_buffers():
            if "running" in key:
                tensor += torch.rand(tensor.shape)
    inputs = [x.requires_grad_() if x.is_floating_point() else x for x in inputs]
    for i, x in enumerate(inputs):
        found[f"{name}/in.{i}"] = x.detach().clone()
    for key, tensor in module.state_dict().items():
        found[f"{name}/state.{key}"] = tensor.clone()
    outputs = call(module, *inputs) if call else module(*inputs)
    if isinstance(outputs, torch.Tensor):
        outputs = [outputs]
    outputs = [x for x in outputs if x is not None]
    outputs[0].square().sum().div(2).backward()
    for i, x in enumerate(outputs):
        found[f"{name}/out.{i}"] = x
    for i, x in enumerate(inputs):
        if x.grad is not None:
            found[f"{name}/grad.in.{i}"] = x.grad
    for key, tensor in module.named_parameters():
        if tensor.grad is not None:
            found[f"{name}/grad.state.{key}"] = tensor.grad
    for key, tensor in module.named_buffers():
        found[f"{name}/after.{key}"] = tensor.clone()


def layers(case):
    x = torch.randn
    case("linear", nn.Linear(4, 3), [x(2, 5, 4)])
    case("linear_no_bias", nn.Linear(4, 3, bias=False), [x(2, 4)])
    case("bilinear", nn.Bilinear(3, 4, 2), [x(2, 5, 3), x(2, 5, 4)])
    ids = torch.tensor([[1, 2, 0], [4, 1, 1]])
    case("embedding", nn.Embedding(5, 3, padding_idx=1), [ids])
    case("embedding_freq", nn.Embedding(5, 3, scale_grad_by_freq=True), [ids])
    case("embedding_bag_mean", nn.EmbeddingBag(5, 3), [ids])
    case("embedding_bag_max", nn.EmbeddingBag(5, 3, mode="max", padding_idx=0), [ids])
    case("embedding_bag_sum", nn.EmbeddingBag(5, 3, mode="sum"),
         [ids.flatten(), torch.tensor([0, 2, 2]), x(6)],
         lambda m, i, offsets, scales: m(i, offsets, scales))
    case("conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), [x(2, 4, 9)])
    case("conv1d_circular", nn.Conv1d(2, 3, 3, padding=2, padding_mode="circular"), [x(2, 2, 5)])
    case("conv2d", nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0)), [x(2, 3, 5, 4)])
    case("conv2d_reflect", nn.Conv2d(2, 2, 3, padding=(1, 2), padding_mode="reflect"),
         [x(1, 2, 4, 4)])
    case("conv2d_replicate", nn.Conv2d(2, 2, 3, padding=1, bias=False, padding_mode="replicate"),
         [x(1, 2, 4, 3)])
    case("conv2d_circular", nn.Conv2d(1, 2, 3, padding=(1, 2), padding_mode="circular"),
         [x(1, 1, 4, 3)])
    case("conv3d", nn.Conv3d(2, 3, 2, padding=1), [x(1, 2, 3, 2, 3)])
    case("constant_pad1d", nn.ConstantPad1d((1, -2), 0.5), [x(2, 2, 4)])
    case("zero_pad2d", nn.ZeroPad2d((1, 0, 2, 1)), [x(1, 2, 3)])
    case("reflection_pad2d", nn.ReflectionPad2d((1, 2, 0, 1)), [x(1, 2, 2, 3)])
    case("replication_pad3d", nn.ReplicationPad3d(1), [x(1, 1, 2, 2, 3)])
    case("circular_pad1d", nn.CircularPad1d((2, 1)), [x(2, 2, 4)])
    case("circular_pad2d", nn.CircularPad2d((1, 2, 0, 1)), [x(1, 2, 3, 4)])
    case("conv_transpose1d", nn.ConvTranspose1d(4, 6, 3, stride=2, output_padding=1, groups=2),
         [x(2, 4, 3)])
    case("conv_transpose2d", nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1), [x(1, 3, 3, 4)])
    case("conv_transpose3d", nn.ConvTranspose3d(2, 2, 2, dilation=2), [x(1, 2, 2, 2, 2)])


def norms(case):
    x = torch.randn
    for training in (True, False):
        mode = "train" if training else "eval"
        case(f"batch_norm1d_{mode}", nn.BatchNorm1d(3), [x(4, 3)], training=training)
        case(f"batch_norm1d_3d_{mode}", nn.BatchNorm1d(3, eps=1e-3, momentum=0.3), [x(2, 3, 4)],
             training=training)
        case(f"batch_norm2d_{mode}", nn.BatchNorm2d(2), [x(2, 2, 3, 3)], training=training)
        case(f"batch_norm3d_{mode}", nn.BatchNorm3d(2), [x(2, 2, 2, 3, 2)], training=training)
        case(f"instance_norm2d_{mode}",
             nn.InstanceNorm2d(2, affine=True, track_running_stats=True), [x(3, 2, 3, 3)],
             training=training)
    case("batch_norm2d_plain", nn.BatchNorm2d(2, affine=False, track_running_stats=False),
         [x(2, 2, 3, 3)], training=False)
    case("instance_norm1d", nn.InstanceNorm1d(3), [x(2, 3, 5)])
    case("instance_norm1d_unbatched", nn.InstanceNorm1d(3, affine=True), [x(3, 5)])
    case("instance_norm3d", nn.InstanceNorm3d(2, affine=True), [x(2, 2, 2, 3, 2)])
    case("layer_norm", nn.LayerNorm([3, 4]), [x(2, 3, 4)])
    case("layer_norm_no_bias", nn.LayerNorm(4, eps=1e-3, bias=False), [x(2, 3, 4)])
    case("layer_norm_plain", nn.LayerNorm(4, elementwise_affine=False), [x(2, 4)])
    case("rms_norm", nn.RMSNorm([3, 4]), [x(2, 3, 4)])
    case("rms_norm_plain", nn.RMSNorm(4, eps=1e-2, elementwise_affine=False), [x(2, 4)])
    case("group_norm", nn.GroupNorm(2, 4), [x(2, 4, 3)])


def pools(case):
    x = torch.randn
    case("max_pool1d", nn.MaxPool1d(3, stride=2, padding=1), [x(2, 2, 7)])
    case("max_pool2d", nn.MaxPool2d((2, 3), dilation=(2, 1), ceil_mode=True), [x(1, 2, 6, 7)])
    case("max_pool3d", nn.MaxPool3d(2), [x(1, 2, 4, 4, 4)])
    case("avg_pool1d", nn.AvgPool1d(3, stride=2, padding=1, count_include_pad=False), [x(2, 2, 7)])
    case("avg_pool2d", nn.AvgPool2d((2, 3), divisor_override=5), [x(1, 2, 4, 6)])
    case("avg_pool3d", nn.AvgPool3d(2, stride=1), [x(1, 2, 3, 3, 3)])
    case("adaptive_avg_pool1d", nn.AdaptiveAvgPool1d(3), [x(2, 2, 7)])
    case("adaptive_avg_pool2d", nn.AdaptiveAvgPool2d((3, 2)), [x(1, 2, 5, 4)])
    case("adaptive_avg_pool3d", nn.AdaptiveAvgPool3d(2), [x(1, 2, 3, 4, 5)])
    case("adaptive_max_pool1d", nn.AdaptiveMaxPool1d(3), [x(2, 2, 7)])
    case("adaptive_max_pool2d", nn.AdaptiveMaxPool2d((3, 2)), [x(1, 2, 5, 4)])
    case("adaptive_max_pool3d", nn.AdaptiveMaxPool3d(2), [x(1, 2, 3, 4, 5)])
    case("upsample_nearest", nn.Upsample(scale_factor=1.7), [x(1, 2, 3, 4)])
    case("upsample_nearest1d", nn.Upsample(size=5), [x(1, 2, 3)])
    case("upsample_linear", nn.Upsample(scale_factor=2.0, mode="linear"), [x(1, 2, 3)])
    case("upsample_bilinear", nn.Upsample(size=(5, 3), mode="bilinear", align_corners=True),
         [x(1, 1, 3, 4)])
    case("upsample_bicubic", nn.Upsample(scale_factor=(2.0, 1.5), mode="bicubic"), [x(1, 1, 3, 4)])
    case("upsample_trilinear", nn.Upsample(scale_factor=2.0, mode="trilinear"), [x(1, 1, 2, 2, 3)])


def activations(case):
    for name, module in {
            "relu": nn.ReLU(), "relu6": nn.ReLU6(), "leaky_relu": nn.LeakyReLU(0.2),
            "prelu": nn.PReLU(4), "elu": nn.ELU(0.7), "celu": nn.CELU(1.3), "selu": nn.SELU(),
            "gelu": nn.GELU(), "gelu_tanh": nn.GELU("tanh"), "silu": nn.SiLU(),
            "mish": nn.Mish(), "tanh": nn.Tanh(), "tanhshrink": nn.Tanhshrink(),
            "sigmoid": nn.Sigmoid(), "log_sigmoid": nn.LogSigmoid(),
            "softplus": nn.Softplus(2, 3), "softsign": nn.Softsign(),
            "softshrink": nn.Softshrink(0.3), "hardshrink": nn.Hardshrink(0.3),
            "hardtanh": nn.Hardtanh(-0.5, 0.7), "hardsigmoid": nn.Hardsigmoid(),
            "hardswish": nn.Hardswish(), "threshold": nn.Threshold(0.1, -2), "glu": nn.GLU(1),
            "softmax": nn.Softmax(1), "softmin": nn.Softmin(-1),
            "log_softmax": nn.LogSoftmax(1)}.items():
        case(name, module, [torch.randn(3, 4, 2) * 2])


def attention(case):
    x = torch.randn
    causal = torch.ones(4, 4, dtype=torch.bool).triu(1)
    padding = torch.tensor([[False, False, False, True], [False] * 4])

    def to_itself(m, q):
        return m(q, q, q)

    case("attention", nn.MultiheadAttention(6, 2), [x(4, 2, 6)], to_itself)
    case("attention_per_head", nn.MultiheadAttention(6, 3, bias=False), [x(4, 2, 6)],
         lambda m, q: m(q, q, q, average_attn_weights=False))
    case("attention_unbatched", nn.MultiheadAttention(4, 2), [x(4, 4)], to_itself)
    case("attention_cross", nn.MultiheadAttention(6, 2, kdim=3, vdim=5, batch_first=True),
         [x(2, 3, 6), x(2, 4, 3), x(2, 4, 5)])
    case("attention_other_key", nn.MultiheadAttention(6, 2), [x(3, 2, 6), x(4, 2, 6)],
         lambda m, q, k: m(q, k, k))
    case("attention_masked", nn.MultiheadAttention(6, 2, batch_first=True), [x(2, 4, 6), padding],
         lambda m, q, p: m(q, q, q, key_padding_mask=p, attn_mask=causal))
    case("attention_added", nn.MultiheadAttention(6, 2, batch_first=True),
         [x(2, 4, 6), x(4, 4, 4)], lambda m, q, mask: m(q, q, q, attn_mask=mask))
    options = {"dim_feedforward": 8, "dropout": 0.0, "batch_first": True}
    case("encoder_layer", nn.TransformerEncoderLayer(6, 2, **options), [x(2, 4, 6), padding],
         lambda m, q, p: m(q, causal, p))
    case("encoder_layer_norm_first",
         nn.TransformerEncoderLayer(6, 2, 8, 0.0, "gelu", 1e-4, False, True, False), [x(4, 2, 6)])
    layer = nn.TransformerEncoderLayer(4, 2, **options)
    case("encoder", nn.TransformerEncoder(layer, 2, nn.LayerNorm(4)), [x(2, 4, 4)])
    case("decoder_layer", nn.TransformerDecoderLayer(6, 2, **options),
         [x(2, 4, 6), x(2, 3, 6)], lambda m, q, memory: m(q, memory, tgt_mask=causal))
    layer = nn.TransformerDecoderLayer(4, 2, norm_first=True, **options)
    case("decoder", nn.TransformerDecoder(layer, 2, nn.LayerNorm(4)), [x(2, 4, 4), x(2, 3, 4)])


def recurrent(case):
    x = torch.randn

    def lstm(m, y, *states):
        output, (h, c) = m(y, states or None)
        return output, h, c

    case("rnn", nn.RNN(3, 4, num_layers=2), [x(5, 2, 3), x(2, 2, 4)])
    case("rnn_relu", nn.RNN(3, 4, nonlinearity="relu", bias=False), [x(5, 2, 3)])
    case("gru", nn.GRU(3, 4, num_layers=2, bidirectional=True, batch_first=True), [x(2, 5, 3)])
    case("gru_unbatched", nn.GRU(3, 4), [x(5, 3), x(1, 4)])
    case("lstm", nn.LSTM(3, 4, num_layers=2, bidirectional=True),
         [x(5, 2, 3), x(4, 2, 4), x(4, 2, 4)], lstm)
    case("lstm_projected", nn.LSTM(3, 4, batch_first=True, proj_size=2), [x(2, 5, 3)], lstm)
    case("lstm_unbatched", nn.LSTM(3, 4, batch_first=True), [x(5, 3)], lstm)
    case("rnn_cell", nn.RNNCell(3, 4), [x(2, 3), x(2, 4)])
    case("rnn_relu_cell", nn.RNNCell(3, 4, nonlinearity="relu"), [x(3)])
    case("gru_cell", nn.GRUCell(3, 4, bias=False), [x(2, 3), x(2, 4)])
    case("lstm_cell", nn.LSTMCell(3, 4), [x(2, 3), x(2, 4), x(2, 4)],
         lambda m, y, h, c: m(y, (h, c)))


def losses(case):
    x = torch.randn
    classes = torch.tensor([1, 3, 0, 3])
    weight = torch.rand(4) + 0.5
    signs = torch.tensor([1, -1, -1, 1])

    case("cross_entropy", nn.CrossEntropyLoss(weight, ignore_index=0, label_smoothing=0.1),
         [x(4, 4), classes])
    case("cross_entropy_sum", nn.CrossEntropyLoss(reduction="sum"), [x(4, 4), classes])
    case("cross_entropy_soft", nn.CrossEntropyLoss(), [x(4, 4), x(4, 4).softmax(1)])
    case("nll", nn.NLLLoss(weight, reduction="none"), [x(4, 4), classes])
    case("mse", nn.MSELoss(), [x(3, 4), x(3, 4)])
    case("l1", nn.L1Loss(reduction="sum"), [x(3, 4), x(3, 4)])
    case("smooth_l1", nn.SmoothL1Loss(beta=0.5), [x(3, 4), x(3, 4)])
    case("huber", nn.HuberLoss(delta=0.7), [x(3, 4), x(3, 4)])
    case("bce_with_logits", nn.BCEWithLogitsLoss(weight, pos_weight=weight * 2),
         [x(3, 4), torch.rand(3, 4)])
    case("bce", nn.BCELoss(weight), [torch.rand(3, 4), torch.rand(3, 4)])
    case("multi_margin", nn.MultiMarginLoss(2, 0.5, weight), [x(4, 4), classes])
    case("multilabel_margin", nn.MultiLabelMarginLoss(reduction="sum"),
         [x(2, 4), torch.tensor([[3, 0, -1, 1], [2, -1, 0, 0]])])
    case("ctc", nn.CTCLoss(),
         [x(6, 2, 4).log_softmax(2).detach(), torch.tensor([[1, 2, 2], [3, 1, 0]])],
         lambda m, scores, targets: m(scores, targets, (6, 5), (3, 2)))
    case("kl_div", nn.KLDivLoss(reduction="batchmean"),
         [x(3, 4).log_softmax(1).detach(), x(3, 4).softmax(1).detach()])
    case("kl_div_log", nn.KLDivLoss(reduction="mean", log_target=True), [x(3, 4), x(3, 4)])
    case("poisson_nll", nn.PoissonNLLLoss(full=True), [x(3, 4), torch.rand(3, 4) * 4])
    case("poisson_nll_rate", nn.PoissonNLLLoss(log_input=False, reduction="sum"),
         [torch.rand(3, 4) + 0.1, torch.rand(3, 4) * 4])
    case("gaussian_nll", nn.GaussianNLLLoss(full=True, eps=0.2),
         [x(3, 4), x(3, 4), torch.rand(3, 4)])
    case("margin_ranking", nn.MarginRankingLoss(0.3), [x(4), x(4), signs])
    case("hinge_embedding", nn.HingeEmbeddingLoss(0.5), [x(4), signs])
    case("cosine_embedding", nn.CosineEmbeddingLoss(0.1), [x(4, 3), x(4, 3), signs])
    case("soft_margin", nn.SoftMarginLoss(), [x(4), signs])
    case("triplet_margin", nn.TripletMarginLoss(swap=True), [x(4, 3), x(4, 3), x(4, 3)])
    case("triplet_margin_p", nn.TripletMarginLoss(2.0, p=3), [x(4, 3), x(4, 3), x(4, 3)])


def packed(case):
    x = torch.randn

    def run(lengths, batch_first=False, enforce_sorted=True, total_length=None):
        def call(m, y, *states):
            state = states if len(states) > 1 else states[0] if states else None
            sequence = nn.utils.rnn.pack_padded_sequence(y, lengths, batch_first, enforce_sorted)
            output, last = m(sequence, state)
            padded, _ = nn.utils.rnn.pad_packed_sequence(output, batch_first, 0.0, total_length)
            return (padded, *last) if isinstance(last, tuple) else (padded, last)
        return call

    case("packed_rnn", nn.RNN(3, 4, num_layers=2), [x(5, 3, 3), x(2, 3, 4)], run([5, 5, 2]))
    case("packed_gru", nn.GRU(3, 4, num_layers=2, bidirectional=True, batch_first=True),
         [x(4, 6, 3), x(4, 4, 4)], run([2, 5, 1, 5], True, False, 6))
    case("packed_lstm", nn.LSTM(3, 4, num_layers=2, bidirectional=True),
         [x(5, 3, 3), x(4, 3, 4), x(4, 3, 4)], run([1, 5, 3], False, False))
    case("packed_lstm_projected", nn.LSTM(3, 4, batch_first=True, proj_size=2, bias=False),
         [x(2, 4, 3)], run([4, 2], True))


def main():
    here = pathlib.Path(__file__).parent
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "pytorch_reference.safetensors"
    torch.manual_seed(0)
    found = {}

    def case(name, module, inputs, call=None, training=True):
        inputs = [x.detach() for x in inputs]
        record(found, name, module, inputs, call, training)

    for part in (layers, norms, pools, activations, attention, recurrent, losses, packed):
        part(case)
    write_safetensors(path, found)
    print(f"{path}: {len(found)} tensors of PyTorch {torch.__version__}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
