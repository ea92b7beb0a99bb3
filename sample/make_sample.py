#!/usr/bin/env python3
"""Makes and checks the sample for `onelaunch rates` and `onelaunch step`.

Making it (needs torch and transformers):

1. builds a small Qwen3-Next model with random weights (byte-level vocabulary,
   4 layers, of which 3 are gated-delta "linear attention" layers with 16
   value heads over 8 key heads),
2. trains it on real text, long enough that `A_log` and `dt_bias` leave their
   initial values,
3. saves it as a sharded safetensors checkpoint in `model/`: bfloat16 weights,
   float32 `A_log` and `dt_bias`,
4. loads that checkpoint again, runs it once over held-out text and records in
   `activations.safetensors`, per gated-delta layer, the gating inputs `a` and
   `b` and the `beta` and decay that transformers itself computed from them,
5. lets each gated-delta layer decode the same tokens one by one from the
   projections of that pass, and records in `steps.safetensors` what went in and
   what came out (`--steps-only`: this step alone, with the checkpoint that is
   there; no other file is touched).

Checking it (`--verify`, needs torch only): reads the files again, checks names,
shapes and dtypes, and computes beta, decay and the steps' results anew from the
checkpoint's parameters and the recorded inputs.

Nothing of the training text is written to any file, only its name, size and
SHA-256.
"""

import argparse
import hashlib
import json
import math
import struct
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

HERE = Path(__file__).resolve().parent
DEFAULT_TEXT = "/usr/share/common-licenses/GPL-3"
GATE_PARAMETERS = ("A_log", "dt_bias")  # kept in float32
VOCAB = 256  # one token per byte value


# --------------------------------------------------------------------------
# safetensors reading, so that --verify needs no package besides torch

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16}


def read_safetensors(path):
    """Returns (tensors by name, metadata) of a safetensors file."""
    raw = path.read_bytes()
    (header_len,) = struct.unpack_from("<Q", raw, 0)
    header = json.loads(raw[8 : 8 + header_len])
    metadata = header.pop("__metadata__", {})
    data = bytearray(raw[8 + header_len :])
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype = DTYPES[entry["dtype"]]
        flat = torch.frombuffer(data[begin:end], dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors, metadata


def read_checkpoint(folder):
    """Returns all tensors of a sharded checkpoint and each one's shard."""
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    weight_map = index["weight_map"]
    tensors = {}
    for shard in sorted(set(weight_map.values())):
        in_shard, _ = read_safetensors(folder / shard)
        listed = {n for n, s in weight_map.items() if s == shard}
        if set(in_shard) != listed:
            raise SystemExit(f"{shard}: its tensors are not those the index lists")
        tensors.update(in_shard)
    return tensors, weight_map


# --------------------------------------------------------------------------
# making


def to_ids(data):
    return torch.tensor(list(data), dtype=torch.long)


def read_text(paths, heldout_fraction):
    """Returns (training bytes, held-out bytes, description of the text).

    The held-out part is the end of each file.
    """
    train, heldout, about = [], [], []
    for path in paths:
        data = Path(path).read_bytes()
        cut = int(len(data) * (1 - heldout_fraction))
        train.append(data[:cut])
        heldout.append(data[cut:])
        digest = hashlib.sha256(data).hexdigest()
        about.append(
            f"{Path(path).name}, {len(data)} bytes, held out from byte {cut}, sha256 {digest}"
        )
    return to_ids(b"".join(train)), to_ids(b"".join(heldout)), "; ".join(about)


def build_model(seed):
    from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

    config = Qwen3NextConfig(
        vocab_size=VOCAB,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        full_attention_interval=4,  # layers 0, 1, 2 gated delta, layer 3 full attention
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        linear_num_key_heads=8,
        linear_num_value_heads=16,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        linear_conv_kernel_dim=4,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        shared_expert_intermediate_size=32,
        mlp_only_layers=[0],
        max_position_embeddings=1024,
        use_cache=False,
    )
    torch.manual_seed(seed)
    return Qwen3NextForCausalLM(config)


def gated_delta_layers(model):
    """Yields (checkpoint prefix, module) of each gated-delta layer."""
    for name, module in model.named_modules():
        if hasattr(module, "A_log") and hasattr(module, "dt_bias"):
            yield name, module


def init_gates(model, dt_min, dt_max):
    """Gives the heads a spread of time scales, as the Mamba-2 family is started.

    transformers starts dt_bias at 1, which with A up to 16 makes most heads
    forget everything at each token, and such heads hardly learn. Here dt is
    log-uniform in [dt_min, dt_max], and dt_bias its inverse softplus. A_log
    stays as transformers starts it: log of uniform(0.01, 16).
    """
    for _, module in gated_delta_layers(model):
        u = torch.rand_like(module.dt_bias)
        dt = torch.exp(math.log(dt_min) + u * (math.log(dt_max) - math.log(dt_min)))
        with torch.no_grad():
            module.dt_bias.copy_(dt + torch.log(-torch.expm1(-dt)))


def gate_values(model):
    return {
        f"{prefix}.{name}": getattr(module, name).detach().float().clone()
        for prefix, module in gated_delta_layers(model)
        for name in GATE_PARAMETERS
    }


def mean_loss(model, ids, seq_len):
    """Mean next-byte loss (nats) over ids, in windows of seq_len."""
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for begin in range(0, len(ids) - seq_len, seq_len):
            window = ids[None, begin : begin + seq_len + 1]
            logits = model(input_ids=window[:, :-1]).logits.float()
            total += F.cross_entropy(logits[0], window[0, 1:], reduction="sum").item()
            count += seq_len
    return total / count


def train(model, ids, heldout, args):
    """Trains in float32 with AdamW and a cosine schedule; returns the losses."""
    decayed, plain, gates = [], [], []
    for name, parameter in model.named_parameters():
        if name.endswith(GATE_PARAMETERS):
            gates.append(parameter)
        elif parameter.dim() >= 2 and "conv1d" not in name:
            decayed.append(parameter)
        else:
            plain.append(parameter)
    optimizer = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": args.weight_decay},
            {"params": plain, "weight_decay": 0.0},
            {"params": gates, "weight_decay": 0.0, "lr": args.gate_lr},
        ],
        lr=args.lr,
        betas=(0.9, 0.98),
    )
    warmup = max(1, args.steps // 20)

    def scale(step):
        if step < warmup:
            return (step + 1) / warmup
        done = (step - warmup) / max(1, args.steps - warmup)
        return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, scale)
    generator = torch.Generator().manual_seed(args.seed + 1)
    losses = {
        "train_loss_before": mean_loss(model, ids, args.seq_len),
        "heldout_loss_before": mean_loss(model, heldout, args.seq_len),
    }
    started = time.monotonic()
    model.train()
    for step in range(args.steps):
        begins = torch.randint(
            len(ids) - args.seq_len - 1, (args.batch,), generator=generator
        )
        batch = torch.stack([ids[b : b + args.seq_len + 1] for b in begins.tolist()])
        logits = model(input_ids=batch[:, :-1]).logits
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), batch[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 25 == 0 or step == args.steps - 1:
            seconds = time.monotonic() - started
            print(f"step {step:5d}  loss {loss.item():.4f}  {seconds:.0f} s", flush=True)
    losses["train_loss_after"] = mean_loss(model, ids, args.seq_len)
    losses["heldout_loss_after"] = mean_loss(model, heldout, args.seq_len)
    return losses


def save_checkpoint(model, folder, max_shard_size):
    """Saves bfloat16 weights, with the gate parameters in float32."""
    exact = gate_values(model)
    model.to(torch.bfloat16)
    for prefix, module in gated_delta_layers(model):
        for name in GATE_PARAMETERS:
            value = exact[f"{prefix}.{name}"]
            setattr(module, name, torch.nn.Parameter(value))
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("model*.safetensors*"):
        old.unlink()
    model.save_pretrained(folder, max_shard_size=max_shard_size)


def load_checkpoint(folder):
    """Loads the saved checkpoint with the dtypes that it has on disk.

    from_pretrained gives every parameter one dtype, so the float32 ones are
    taken from the files afterwards.
    """
    from transformers import Qwen3NextForCausalLM

    model = Qwen3NextForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    tensors, _ = read_checkpoint(folder)
    for prefix, module in gated_delta_layers(model):
        for name in GATE_PARAMETERS:
            value = tensors[f"{prefix}.{name}"]
            setattr(module, name, torch.nn.Parameter(value))
    return model.eval()


def capture(model, ids):
    """Runs ids through the model once; returns what each layer's gates saw.

    `a` and `b` are the outputs of fix_query_key_value_ordering, that is after
    in_proj_ba's per-key-head interleaving is undone. `g` and `beta` are the
    arguments with which the layer calls the gated delta rule; the decay of a
    token is exp(g).
    """
    from transformers.models.qwen3_next import modeling_qwen3_next as modeling

    seen = {}
    running = []  # prefix of the layer whose forward is under way

    def enter(prefix):
        return lambda module, inputs: running.append(prefix)

    def leave(module, inputs, output):
        running.pop()

    def wrap_ordering(prefix, ordering):
        def wrapped(*inputs):
            result = ordering(*inputs)
            b, a = result[-2:]
            seen[f"{prefix}.a"] = a.detach().clone()
            seen[f"{prefix}.b"] = b.detach().clone()
            return result

        return wrapped

    def wrap_rule(rule):
        def wrapped(*inputs, g, beta, **kwargs):
            prefix = running[-1]
            seen[f"{prefix}.beta"] = beta.detach().clone()
            seen[f"{prefix}.decay"] = g.detach().exp()
            return rule(*inputs, g=g, beta=beta, **kwargs)

        return wrapped

    rules = ("torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule")
    originals = {name: getattr(modeling, name) for name in rules}
    handles = []
    layers = list(gated_delta_layers(model))
    for prefix, module in layers:
        handles.append(module.register_forward_pre_hook(enter(prefix)))
        handles.append(module.register_forward_hook(leave))
        module.fix_query_key_value_ordering = wrap_ordering(
            prefix, module.fix_query_key_value_ordering
        )
    try:
        for name, rule in originals.items():
            setattr(modeling, name, wrap_rule(rule))
        with torch.no_grad():
            model(input_ids=ids[None], use_cache=False)
    finally:
        for name, rule in originals.items():
            setattr(modeling, name, rule)
        for _, module in layers:
            del module.fix_query_key_value_ordering
        for handle in handles:
            handle.remove()
    return seen


class Recorded(torch.nn.Module):
    """Stands for a projection: gives the recorded results of one token after the other."""

    def __init__(self, rows):
        super().__init__()
        self.rows = rows
        self.next = 0

    def forward(self, hidden_states):
        self.next += 1
        return self.rows[:, self.next - 1 : self.next]


def decode(model, prefix, module, qkvz, ba):
    """Runs a layer's own forward token by token, as in decoding, on recorded projections.

    Without a state the layer would take its first token by the chunked rule. So it
    starts from a state and a window of zeros, which is the same in exact
    arithmetic, and every token goes through the convolution's update and the
    recurrent rule. Returns core (the rule's output), output (what out_proj takes),
    and the state and window after the last token.
    """
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config)
    index = module.layer_idx
    layer = cache.layers[index]
    layer.lazy_initialization(
        conv_states=torch.zeros(1, module.conv_dim, module.conv_kernel_size, dtype=qkvz.dtype),
        recurrent_states=torch.zeros(1, module.num_v_heads, module.head_k_dim, module.head_v_dim),
    )
    layer.has_previous_state[0] = True
    seen = {"core": [], "output": []}
    heads = (1, 1, module.num_v_heads, module.head_v_dim)
    handles = [
        module.norm.register_forward_pre_hook(
            lambda _, inputs: seen["core"].append(inputs[0].reshape(heads).clone())
        ),
        module.out_proj.register_forward_pre_hook(
            lambda _, inputs: seen["output"].append(inputs[0].reshape(heads).clone())
        ),
    ]
    projections = module.in_proj_qkvz, module.in_proj_ba
    module.in_proj_qkvz, module.in_proj_ba = Recorded(qkvz), Recorded(ba)
    hidden_states = torch.zeros(1, 1, module.hidden_size, dtype=qkvz.dtype)  # nothing reads it
    try:
        with torch.no_grad():
            for _ in range(qkvz.shape[1]):
                module(hidden_states, cache=cache)
    finally:
        module.in_proj_qkvz, module.in_proj_ba = projections
        for handle in handles:
            handle.remove()
    return {
        f"{prefix}.core": torch.cat(seen["core"], dim=1),
        f"{prefix}.output": torch.cat(seen["output"], dim=1),
        f"{prefix}.state": layer.recurrent_states[0].clone(),
        f"{prefix}.window": layer.conv_states[0].clone(),
    }


def capture_steps(model, ids):
    """Runs ids through the model once, and each gated-delta layer again token by token."""
    seen, projected, prefilled, handles = capture(model, ids), {}, {}, []
    layers = list(gated_delta_layers(model))
    for prefix, module in layers:
        for name in ("in_proj_qkvz", "in_proj_ba"):
            handles.append(
                getattr(module, name).register_forward_hook(
                    lambda _, inputs, output, key=(prefix, name): projected.update({key: output})
                )
            )
        handles.append(
            module.out_proj.register_forward_pre_hook(
                lambda _, inputs, key=prefix: prefilled.update({key: inputs[0]})
            )
        )
    try:
        with torch.no_grad():
            model(input_ids=ids[None], use_cache=False)
    finally:
        for handle in handles:
            handle.remove()
    steps = {}
    for prefix, module in layers:
        qkvz, ba = projected[prefix, "in_proj_qkvz"], projected[prefix, "in_proj_ba"]
        steps[f"{prefix}.qkvz"] = qkvz.clone()
        steps[f"{prefix}.a"], steps[f"{prefix}.b"] = seen[f"{prefix}.a"], seen[f"{prefix}.b"]
        steps.update(decode(model, prefix, module, qkvz, ba))
        # What the same layer made of the same projections in one pass, by the chunked rule.
        output, chunked = steps[f"{prefix}.output"].float(), prefilled[prefix].float()
        off = (output - chunked.reshape(output.shape)).abs()
        print(f"{prefix}: recurrent and chunked rule differ in {(off > 0).sum()} of {off.numel()} outputs, by up to {off.max():.2g}")
    return steps


def save_steps(model, ids, path):
    import transformers
    from safetensors.torch import save_file

    # In one entry, since the order of several is another one in each run.
    recorded = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "tokens": f"first {len(ids)} held-out bytes, one token per byte",
    }
    steps = {name: tensor.contiguous() for name, tensor in capture_steps(model, ids).items()}
    save_file(steps, path, metadata={"recorded": json.dumps(recorded)})
    path.chmod(0o644)


def make_steps(args):
    torch.set_num_threads(args.threads)
    torch.use_deterministic_algorithms(True)
    _, heldout_ids, _ = read_text(args.text, args.heldout)
    model = load_checkpoint(args.out / "model")
    save_steps(model, heldout_ids[: args.tokens], args.out / "steps.safetensors")


def make(args):
    import transformers
    from safetensors.torch import save_file

    torch.set_num_threads(args.threads)
    torch.use_deterministic_algorithms(True)
    train_ids, heldout_ids, about_text = read_text(args.text, args.heldout)
    if len(heldout_ids) < max(args.tokens, args.seq_len + 1):
        raise SystemExit("the held-out part of the text is too short")
    model = build_model(args.seed)
    init_gates(model, args.dt_min, args.dt_max)
    before = gate_values(model)
    count = sum(p.numel() for p in model.parameters())
    print(f"{count} parameters, {len(train_ids)} training bytes: {about_text}")

    results = train(model, train_ids, heldout_ids, args)
    after = gate_values(model)
    for name, value in after.items():
        moved = (value - before[name]).abs()
        results[f"{name} moved"] = (
            f"mean {moved.mean():.4f} max {moved.max():.4f}, "
            f"from [{before[name].min():.4f}, {before[name].max():.4f}] "
            f"to [{value.min():.4f}, {value.max():.4f}]"
        )

    folder = args.out / "model"
    save_checkpoint(model, folder, args.max_shard_size)
    model = load_checkpoint(folder)
    results["heldout_loss_saved_bfloat16"] = mean_loss(model, heldout_ids, args.seq_len)
    results = {
        key: f"{value:.4f}" if isinstance(value, float) else value
        for key, value in results.items()
    }
    for key, value in results.items():
        print(f"{key}: {value}")

    seen = capture(model, heldout_ids[: args.tokens])
    metadata = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "seed": str(args.seed),
        "training": f"{args.steps} steps of {args.batch} x {args.seq_len} bytes, "
        f"learning rate {args.lr}, for A_log and dt_bias {args.gate_lr}",
        "text": about_text,
        "tokens": f"first {args.tokens} held-out bytes, one token per byte",
        **results,
    }
    seen = {name: tensor.contiguous() for name, tensor in seen.items()}
    save_file(seen, args.out / "activations.safetensors", metadata=metadata)
    save_steps(model, heldout_ids[: args.tokens], args.out / "steps.safetensors")
    for path in args.out.rglob("*.safetensors"):
        path.chmod(0o644)  # they are written readable by their owner only


# --------------------------------------------------------------------------
# checking


def ordered(x):
    """Maps float32 or bfloat16 bit patterns to integers in value order."""
    if x.dtype == torch.bfloat16:
        bits, sign = x.view(torch.int16).long(), -(1 << 15)
    else:
        bits, sign = x.view(torch.int32).long(), -(1 << 31)
    return torch.where(bits < 0, sign - bits, bits)


def ulps(x, y):
    """Largest distance between x and y, counted in representable values."""
    return (ordered(x) - ordered(y)).abs().max().item()


def steps_again(config, weights, prefix, step):
    """A layer's decoding anew: transformers' operations in torch's own functions.

    Returns core, output, state and window as `decode` records them.
    """
    key_heads, heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    k_dim, v_dim = config["linear_key_head_dim"], config["linear_value_head_dim"]
    ratio, width, eps = heads // key_heads, config["linear_conv_kernel_dim"], config["rms_norm_eps"]
    conv, norm = weights[f"{prefix}.conv1d.weight"], weights[f"{prefix}.norm.weight"]
    rate, bias = weights[f"{prefix}.A_log"].exp(), weights[f"{prefix}.dt_bias"]
    sizes = [k_dim, k_dim, ratio * v_dim, ratio * v_dim]
    rows = step["qkvz"][0].unflatten(-1, (key_heads, -1)).split(sizes, dim=-1)
    mixed = torch.cat([part.flatten(1) for part in rows[:3]], dim=-1)
    z = rows[3].reshape(-1, heads, v_dim)
    window = torch.zeros(1, mixed.shape[-1], width, dtype=mixed.dtype)
    state = torch.zeros(1, heads, k_dim, v_dim)
    results = {"core": [], "output": []}
    for t in range(mixed.shape[0]):
        window = torch.cat([window, mixed[t][None, :, None]], dim=-1)
        convolved = F.silu(F.conv1d(window, conv, groups=window.shape[1])[0, :, -1])
        window = window[:, :, -width:]
        q, k, v = convolved.split([key_heads * k_dim, key_heads * k_dim, heads * v_dim])
        q, k = (x.reshape(1, key_heads, k_dim).repeat_interleave(ratio, dim=1).float() for x in (q, k))
        q, k = (x * torch.rsqrt((x * x).sum(dim=-1, keepdim=True) + 1e-6) for x in (q, k))
        q, v = q / k_dim**0.5, v.reshape(1, heads, v_dim).float()
        g = -rate * F.softplus(step["a"][0, t].float() + bias)
        beta = step["b"][0, t].sigmoid().float()[None, :, None]
        state = state * g.exp()[None, :, None, None]
        delta = (v - (state * k.unsqueeze(-1)).sum(dim=-2)) * beta
        state = state + k.unsqueeze(-1) * delta.unsqueeze(-2)
        core = (state * q.unsqueeze(-1)).sum(dim=-2)[0].to(mixed.dtype)
        wide = core.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
        output = norm * wide.to(mixed.dtype) * F.silu(z[t].float())
        results["core"].append(core)
        results["output"].append(output.to(mixed.dtype))
    results = {name: torch.stack(rows)[None] for name, rows in results.items()}
    return {**results, "state": state, "window": window}


def verify_steps(path, config, weights, activations, prefixes, check):
    """Checks steps.safetensors against the activations, and by computing it again."""
    steps, metadata = read_safetensors(path)
    recorded = json.loads(metadata["recorded"])
    same = (recorded["torch"], recorded["cpu_capability"]) == (
        torch.__version__,
        torch.backends.cpu.get_cpu_capability(),
    )
    names = ("qkvz", "a", "b", "core", "output", "state", "window")
    check(set(steps) == {f"{p}.{n}" for p in prefixes for n in names}, f"names in {path.name}")
    for p in prefixes:
        step = {n: steps[f"{p}.{n}"] for n in names}
        for n, tensor in step.items():
            want = torch.float32 if n == "state" else torch.bfloat16
            check(tensor.dtype == want, f"{p}.{n} is {want}")
            check(bool(torch.isfinite(tensor.float()).all()), f"{p}.{n} is finite")
        off = []
        for n in ("a", "b"):
            # Another pass over the same text, perhaps on another CPU: the matrix products may round otherwise.
            other = activations[f"{p}.{n}"].float()
            off.append(f"{n} of the activations {(step[n] != other).sum().item()}")
            check((step[n].float() - other).abs().max().item() < 0.01, f"{p}.{n} is that of the activations")
        for n, again in steps_again(config, weights, p, step).items():
            check(again.shape == step[n].shape, f"{p}.{n} shape {tuple(step[n].shape)}")
            n_differ = (again != step[n]).sum().item()
            worst = (again.float() - step[n].float()).abs().max().item()
            # Other kernels round otherwise: there, a few bfloat16 steps at the tensor's scale.
            allowed = 0 if same or n == "window" else step[n].float().pow(2).mean().sqrt().item() / 16
            check(worst <= allowed, f"{p}.{n}: {n_differ} of {again.numel()} differ, by up to {worst:.2g}")
            off.append(f"{n} recomputed {n_differ}")
        print(f"{p}: values that differ from those of the steps: {', '.join(off)}")


def verify(out):
    """Checks the sample's files; returns the number of problems found."""
    problems = 0

    def check(ok, what):
        nonlocal problems
        if not ok:
            problems += 1
            print(f"FAIL {what}")

    folder = out / "model"
    config = json.loads((folder / "config.json").read_text())
    weights, weight_map = read_checkpoint(folder)
    activations, metadata = read_safetensors(out / "activations.safetensors")
    heads = config["linear_num_value_heads"]
    prefixes = [
        f"model.layers.{i}.linear_attn"
        for i, kind in enumerate(config["layer_types"])
        if kind == "linear_attention"
    ]
    check(len(set(weight_map.values())) >= 2, "the checkpoint has 2 or more shards")
    expected = {f"{p}.{n}" for p in prefixes for n in ("a", "b", "beta", "decay")}
    check(set(activations) == expected, "names in activations.safetensors")
    gates = {f"{p}.{n}" for p in prefixes for n in GATE_PARAMETERS}
    for name, tensor in weights.items():
        want = torch.float32 if name in gates else torch.bfloat16
        check(tensor.dtype == want, f"{name} is {want}")
    capability = torch.backends.cpu.get_cpu_capability()
    print(f"recorded with torch {metadata['torch']}, {metadata['cpu_capability']}")
    print(f"checking with torch {torch.__version__}, {capability}")
    # torch's exp and log1p round alike only within one torch version and one
    # kind of CPU kernels: elsewhere the last bits of the decay may differ.
    same = (metadata["torch"], metadata["cpu_capability"]) == (torch.__version__, capability)
    allowed = 0 if same else 16

    lengths = set()
    for p in prefixes:
        a_log, dt_bias = weights[f"{p}.A_log"], weights[f"{p}.dt_bias"]
        check(a_log.shape == dt_bias.shape == (heads,), f"{p}: gate parameter shapes")
        a, b, beta, decay = (activations[f"{p}.{n}"] for n in ("a", "b", "beta", "decay"))
        for name, tensor, dtype in (
            ("a", a, torch.bfloat16),
            ("b", b, torch.bfloat16),
            ("beta", beta, torch.bfloat16),
            ("decay", decay, torch.float32),
        ):
            check(tensor.dtype == dtype, f"{p}.{name} is {dtype}")
            check(tensor.dim() == 3 and tensor.shape[::2] == (1, heads), f"{p}.{name} shape")
            check(bool(torch.isfinite(tensor.float()).all()), f"{p}.{name} is finite")
            lengths.add(tensor.shape[1])

        # The same operations as onelaunch rates documents. In bfloat16 torch
        # computes sigmoid in float32 and rounds once, hence the last .to().
        again_beta = torch.sigmoid(b.float()).to(torch.bfloat16)
        again_decay = torch.exp(-(torch.exp(a_log) * F.softplus(a.float() + dt_bias)))
        beta_ulps, decay_ulps = ulps(again_beta, beta), ulps(again_decay, decay)
        check(beta_ulps == 0, f"{p}.beta differs by {beta_ulps} ulp")
        check(decay_ulps <= allowed, f"{p}.decay differs by {decay_ulps} ulp")

        # And against the formulas in float64.
        exact = torch.exp(-(a_log.double().exp() * F.softplus(a.double() + dt_bias.double())))
        error = ((decay.double() - exact).abs() / exact).max().item()
        check(error < 1e-4, f"{p}.decay is {error:.1e} from float64")
        print(
            f"{p}: beta [{beta.min():.4g}, {beta.max():.4g}], "
            f"decay [{decay.min():.4g}, {decay.max():.8g}]; recomputed, differ by "
            f"{beta_ulps} and {decay_ulps} ulp; decay within {error:.1e} of float64"
        )
    check(len(lengths) == 1, "one token count everywhere")
    verify_steps(out / "steps.safetensors", config, weights, activations, prefixes, check)
    print("OK" if problems == 0 else f"{problems} problems")
    return problems


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--verify", action="store_true", help="only check the files that are there")
    add("--steps-only", action="store_true",
        help="only record steps.safetensors, with the checkpoint that is there")
    add("--out", type=Path, default=HERE, help="folder of the sample (default: this one)")
    add("--text", nargs="+", default=[DEFAULT_TEXT], metavar="FILE",
        help=f"text to train on (default: {DEFAULT_TEXT})")
    add("--heldout", type=float, default=0.1, help="fraction of each file held out")
    add("--tokens", type=int, default=96, help="held-out tokens to record")
    add("--seed", type=int, default=20250911)
    add("--steps", type=int, default=250)
    add("--batch", type=int, default=16)
    add("--seq-len", type=int, default=128)
    add("--lr", type=float, default=4e-3)
    add("--gate-lr", type=float, default=0.03, help="for A_log and dt_bias")
    add("--weight-decay", type=float, default=0.1, help="for matrices only")
    add("--dt-min", type=float, default=1e-3, help="smallest initial time step")
    add("--dt-max", type=float, default=0.1, help="largest initial time step")
    add("--max-shard-size", default="250KB")
    add("--threads", type=int, default=1)
    args = parser.parse_args()
    if args.verify:
        sys.exit(1 if verify(args.out) else 0)
    make_steps(args) if args.steps_only else make(args)
    sys.exit(1 if verify(args.out) else 0)


if __name__ == "__main__":
    main()
