#!/usr/bin/env python3
"""Records what PyTorch's optimizers, schedules and gradient clipping compute, for the tests beside it.

    python3 tests/optim/record_reference.py     # writes reference.json; recorded with PyTorch 2.15

Gradients are a formula of step, element and parameter, so that nothing but the optimizer is compared.
"""

import inspect
import json
import math
from pathlib import Path

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.optim import lr_scheduler as schedules
from torch.optim.lbfgs import _strong_wolfe

STEPS = 50
RECORDED = {1, 3, 10, 50}
SHAPES = [(2, 3), (2,)]


def start(dtype):
    """Parameters that begin with 0.5, 0.4, ..."""
    parameters, first = [], 0
    for shape in SHAPES:
        count = math.prod(shape)
        values = [0.5 - 0.1 * (first + i) for i in range(count)]
        parameters.append(torch.tensor(values, dtype=dtype).reshape(shape).requires_grad_())
        first += count
    return parameters


def set_gradients(parameters, step):
    """0.8 p + sin(0.7 step + i); the second parameter has none in every third step."""
    first = 0
    for number, p in enumerate(parameters):
        waves = [math.sin(0.7 * step + first + i) for i in range(p.numel())]
        wave = torch.tensor(waves, dtype=p.dtype).reshape(p.shape)
        first += p.numel()
        p.grad = None if number == 1 and step % 3 == 0 else p.detach() * 0.8 + wave


def flat(parameters):
    return [x for p in parameters for x in p.detach().flatten().tolist()]


def optimizer_cases():
    o = torch.optim
    return {
        "sgd": (o.SGD, dict(lr=0.1)),
        "sgd_momentum": (o.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.01)),
        "sgd_nesterov": (o.SGD, dict(lr=0.05, momentum=0.8, nesterov=True)),
        "sgd_dampening": (o.SGD, dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.02)),
        "sgd_maximize": (o.SGD, dict(lr=0.01, momentum=0.5, weight_decay=0.1, maximize=True)),
        "adam": (o.Adam, dict(lr=0.02)),
        "adam_decay": (o.Adam, dict(lr=0.02, betas=(0.8, 0.95), weight_decay=0.1, eps=1e-6)),
        "adam_amsgrad": (o.Adam, dict(lr=0.02, betas=(0.9, 0.9), amsgrad=True, weight_decay=0.1)),
        "adam_maximize": (o.Adam, dict(lr=0.02, weight_decay=0.1, maximize=True)),
        "adamw": (o.AdamW, dict(lr=0.02)),
        "adamw_decay": (o.AdamW, dict(lr=0.02, betas=(0.8, 0.95), weight_decay=0.3)),
        "adamw_amsgrad": (o.AdamW, dict(lr=0.02, betas=(0.9, 0.9), amsgrad=True, maximize=True)),
        "rmsprop": (o.RMSprop, dict(lr=0.01)),
        "rmsprop_momentum": (o.RMSprop, dict(lr=0.01, alpha=0.9, momentum=0.7, weight_decay=0.1)),
        "rmsprop_centered": (o.RMSprop, dict(lr=0.01, alpha=0.9, centered=True, momentum=0.5, maximize=True)),
        "adagrad": (o.Adagrad, dict(lr=0.1)),
        "adagrad_decay": (o.Adagrad, dict(lr=0.1, lr_decay=0.05, weight_decay=0.1,
                                          initial_accumulator_value=0.2, maximize=True)),
        "adadelta": (o.Adadelta, dict()),
        "adadelta_decay": (o.Adadelta, dict(lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.1, maximize=True)),
        "nadam": (o.NAdam, dict(lr=0.02)),
        "nadam_decay": (o.NAdam, dict(lr=0.02, weight_decay=0.1, momentum_decay=0.02)),
        "nadam_decoupled": (o.NAdam, dict(lr=0.02, betas=(0.8, 0.95), weight_decay=0.1,
                                          decoupled_weight_decay=True, maximize=True)),
        "radam": (o.RAdam, dict(lr=0.02)),
        "radam_decay": (o.RAdam, dict(lr=0.02, betas=(0.8, 0.95), weight_decay=0.1)),
        "radam_decoupled": (o.RAdam, dict(lr=0.02, weight_decay=0.1, decoupled_weight_decay=True, maximize=True)),
        "adafactor": (o.Adafactor, dict(lr=0.1)),
        "adafactor_decay": (o.Adafactor, dict(lr=0.3, beta2_decay=-0.5, eps=(None, 0.2), d=1.2, weight_decay=0.1,
                                              maximize=True)),
    }


def record_optimizers():
    recorded = {}
    for name, (kind, options) in optimizer_cases().items():
        recorded[name] = {}
        for dtype, key in ((torch.float32, "f32"), (torch.float64, "f64")):
            torch.set_default_dtype(dtype)  # of the numbers that an optimizer keeps
            parameters = start(dtype)
            optimizer = kind(parameters, foreach=False, **options)
            values = {}
            for step in range(1, STEPS + 1):
                set_gradients(parameters, step)
                optimizer.step()
                if step in RECORDED:
                    values[str(step)] = flat(parameters)
            recorded[name][key] = values
    torch.set_default_dtype(torch.float32)
    return recorded


def record_muon():
    """A wide and a tall matrix. PyTorch orthogonalises in bfloat16: its rounding is left out here."""
    from torch.optim import _muon

    source = inspect.getsource(_muon._zeropower_via_newtonschulz)
    assert "dtype=torch.bfloat16" in source
    exec(source.replace("dtype=torch.bfloat16", "dtype=grad.dtype"), vars(_muon))
    recorded = {}
    for name, options in {
        "muon": dict(lr=0.03, weight_decay=0.2),
        "muon_plain": dict(lr=0.05, weight_decay=0.0, momentum=0.8, nesterov=False, ns_steps=3),
    }.items():
        recorded[name] = []
        for shape in ((3, 5), (4, 2)):
            values = [0.5 - 0.1 * i for i in range(math.prod(shape))]
            parameter = torch.tensor(values, dtype=torch.float64).reshape(shape).requires_grad_()
            optimizer = torch.optim.Muon([parameter], **options)
            steps = {}
            for step in range(1, STEPS + 1):
                set_gradients([parameter], step)
                optimizer.step()
                if step in RECORDED:
                    steps[str(step)] = flat([parameter])
            recorded[name].append(steps)
    return recorded


def rosenbrock(parameters):
    x = torch.cat([p.reshape(-1) for p in parameters])
    a, b = x[:-1], x[1:]
    return (100 * (b - a * a).square() + (1 - a).square()).sum()


def bowl(parameters):
    """Convex, with gradients that differ much in size."""
    x = torch.cat([p.reshape(-1) for p in parameters])
    weights = torch.arange(1, x.numel() + 1, dtype=x.dtype)
    return (weights * (x - 1).square() / 2 + (x - 1).square().square() / 10).sum()


def record_lbfgs():
    cases = {
        "fixed_steps": (bowl, 1, dict(lr=0.5, max_iter=5, history_size=3)),
        "strong_wolfe": (rosenbrock, 1, dict(max_iter=5, line_search_fn="strong_wolfe")),
        "short_history": (rosenbrock, 1, dict(max_iter=4, max_eval=9, history_size=2,
                                              line_search_fn="strong_wolfe")),
        "maximize": (bowl, -1, dict(max_iter=5, maximize=True, line_search_fn="strong_wolfe")),
    }
    recorded = {}
    for name, (function, sign, options) in cases.items():
        parameters = start(torch.float64)
        optimizer = torch.optim.LBFGS(parameters, **options)

        def closure():
            optimizer.zero_grad()
            loss = sign * function(parameters)
            loss.backward()
            return loss

        steps = []
        for _ in range(12):
            loss = optimizer.step(closure)
            steps.append({"loss": loss.item(), "values": flat(parameters)})
        recorded[name] = steps
    return recorded


def lines():
    """Functions of a step, with their slopes; rational and quintic are of More and Thuente (1994)."""
    return {
        "quartic": (lambda t: (t - 3) ** 4 - 2 * t, lambda t: 4 * (t - 3) ** 3 - 2),
        "rational": (lambda t: -t / (t * t + 2), lambda t: (t * t - 2) / (t * t + 2) ** 2),
        "quintic": (lambda t: (t + 0.004) ** 5 - 2 * (t + 0.004) ** 4,
                    lambda t: 5 * (t + 0.004) ** 4 - 8 * (t + 0.004) ** 3),
        "waves": (lambda t: t * t / 10 - 2 * t + 0.4 * math.sin(4 * t),
                  lambda t: t / 5 - 2 + 1.6 * math.cos(4 * t)),
    }


def record_line_searches():
    recorded = {}
    for name, (value, slope) in lines().items():
        found = []
        for first in (1e-3, 0.1, 0.7, 1.5, 4.0, 10.0, 100.0):
            def evaluate(x, t, d):
                t = float(t)
                return value(t), torch.tensor([slope(t)], dtype=torch.float64)

            start_slope = torch.tensor(slope(0.0), dtype=torch.float64)
            loss, _, t, count = _strong_wolfe(
                evaluate, None, first, torch.ones(1, dtype=torch.float64), value(0.0),
                start_slope.reshape(1), start_slope)
            found.append({"first": first, "t": float(t), "loss": float(loss), "evaluations": count})
        recorded[name] = found
    return recorded


def chained(optimizer):
    return schedules.ChainedScheduler([
        schedules.ConstantLR(optimizer, factor=0.1, total_iters=20),
        schedules.ExponentialLR(optimizer, gamma=0.9),
    ])


def sequential(optimizer):
    return schedules.SequentialLR(optimizer, [
        schedules.LinearLR(optimizer, start_factor=0.1, total_iters=10),
        schedules.CosineAnnealingLR(optimizer, T_max=30, eta_min=0.001),
        schedules.StepLR(optimizer, step_size=4, gamma=0.5),
    ], milestones=[10, 40])


def sequential_restarts(optimizer):
    return schedules.SequentialLR(optimizer, [
        schedules.ConstantLR(optimizer, factor=0.5, total_iters=3),
        schedules.CosineAnnealingWarmRestarts(optimizer, T_0=5, T_mult=2),
        schedules.LambdaLR(optimizer, lambda step: 1 / (1 + step)),
    ], milestones=[6, 35])


def schedule_cases():
    s = schedules
    return {
        "step": lambda o: s.StepLR(o, step_size=7, gamma=0.3),
        "multi_step": lambda o: s.MultiStepLR(o, milestones=[5, 12, 12, 40], gamma=0.5),
        "exponential": lambda o: s.ExponentialLR(o, gamma=0.93),
        "lambda": lambda o: s.LambdaLR(o, [lambda step: 0.95 ** step, lambda step: 1 / (1 + step)]),
        "constant": lambda o: s.ConstantLR(o, factor=0.25, total_iters=9),
        "linear": lambda o: s.LinearLR(o, start_factor=0.2, end_factor=0.9, total_iters=15),
        "linear_to_zero": lambda o: s.LinearLR(o, start_factor=1.0, end_factor=0.0, total_iters=11),
        "cosine": lambda o: s.CosineAnnealingLR(o, T_max=20, eta_min=0.002),
        "cosine_long": lambda o: s.CosineAnnealingLR(o, T_max=80),
        "warm_restarts": lambda o: s.CosineAnnealingWarmRestarts(o, T_0=6, eta_min=0.001),
        "warm_restarts_longer": lambda o: s.CosineAnnealingWarmRestarts(o, T_0=5, T_mult=2),
        "one_cycle": lambda o: s.OneCycleLR(o, max_lr=[0.5, 0.2], total_steps=55),
        "one_cycle_linear": lambda o: s.OneCycleLR(o, max_lr=0.5, epochs=5, steps_per_epoch=11, pct_start=0.4,
                                                   anneal_strategy="linear", div_factor=10, final_div_factor=100),
        "one_cycle_three_phase": lambda o: s.OneCycleLR(o, max_lr=0.5, total_steps=55, three_phase=True,
                                                        base_momentum=0.7, max_momentum=0.9),
        "chained": chained,
        "sequential": sequential,
        "sequential_restarts": sequential_restarts,
    }


def new_optimizer(kind=torch.optim.SGD):
    a, b = start(torch.float32)
    return kind([{"params": [a], "lr": 0.1}, {"params": [b], "lr": 0.02}])


def rates(optimizer):
    return [group["lr"] for group in optimizer.param_groups]


def record_schedules():
    recorded = {}
    for name, make in schedule_cases().items():
        optimizer = new_optimizer(torch.optim.AdamW if name == "one_cycle" else torch.optim.SGD)
        schedule = make(optimizer)
        values, momenta = [rates(optimizer)], []
        for _ in range(55):
            group = optimizer.param_groups[0]
            momenta.append(group["betas"][0] if "betas" in group else group["momentum"])
            optimizer.step()
            schedule.step()
            assert schedule.get_last_lr() == rates(optimizer)
            values.append(rates(optimizer))
        recorded[name] = {"rates": values}
        if name.startswith("one_cycle"):
            recorded[name]["momenta"] = momenta
    return recorded


def metric(step):
    return 1 / (1 + step) + 0.05 * math.sin(step)


def record_plateau():
    cases = {
        "min": dict(patience=2, factor=0.5),
        "max": dict(mode="max", patience=3, factor=0.3, cooldown=4),
        "absolute": dict(patience=1, threshold=0.01, threshold_mode="abs", factor=0.7, min_lr=[0.01, 0.005]),
        "max_absolute": dict(mode="max", threshold=0.1, threshold_mode="abs", patience=0, factor=0.9, eps=1e-3),
    }
    recorded = {}
    for name, options in cases.items():
        optimizer = new_optimizer()
        schedule = schedules.ReduceLROnPlateau(optimizer, **options)
        values = []
        for step in range(55):
            schedule.step(metric(step))
            values.append(rates(optimizer))
        recorded[name] = values
    return recorded


def record_fractions():
    """CosineAnnealingWarmRestarts at fractions of an epoch."""
    recorded = []
    for times in (1, 2, 3):
        optimizer = new_optimizer()
        schedule = schedules.CosineAnnealingWarmRestarts(optimizer, T_0=4, T_mult=times, eta_min=0.001)
        values = []
        for quarter in range(80):
            schedule.step(quarter / 4)
            values.append(optimizer.param_groups[0]["lr"])
        recorded.append(values)
    return recorded


def record_clipping():
    recorded = []
    for max_norm, norm_type in ((1, 2), (0.5, 1), (0.25, math.inf), (2, 3), (100, 2), (0.1, 0.5)):
        parameters = start(torch.float32)
        set_gradients(parameters, 1)
        norm = clip_grad_norm_(parameters, max_norm, norm_type)
        recorded.append({"max_norm": max_norm, "norm_type": -1 if norm_type == math.inf else norm_type,
                         "norm": norm.item(), "gradients": flat([p.grad for p in parameters])})
    parameters = start(torch.float32)
    set_gradients(parameters, 1)
    clip_grad_value_(parameters, 0.3)
    return {"norms": recorded, "values": flat([p.grad for p in parameters])}


def shortened(case, digits=14):
    """Numbers without the digits that no test looks at: f32 has 9."""
    if isinstance(case, dict):
        return {key: shortened(each, 9 if key == "f32" else digits) for key, each in case.items()}
    if isinstance(case, list):
        return [shortened(each, digits) for each in case]
    return float(f"{case:.{digits}g}") if isinstance(case, float) else case


def write(path, recorded):
    lines = [json.dumps(section) + ": {\n" + ",\n".join(
        json.dumps(name) + ": " + json.dumps(shortened(case), separators=(",", ":")) for name, case in cases.items()) + "}"
        for section, cases in recorded.items()]
    path.write_text("{\n" + ",\n".join(lines) + "}\n")


def main():
    torch.set_num_threads(1)
    write(Path(__file__).with_name("reference.json"), {
        "optimizers": record_optimizers(),
        "muon": record_muon(),
        "lbfgs": record_lbfgs(),
        "line_searches": record_line_searches(),
        "schedules": record_schedules(),
        "plateau": record_plateau(),
        "fractions": {"t_mult": record_fractions()},
        "clipping": record_clipping(),
    })


if __name__ == "__main__":
    main()
