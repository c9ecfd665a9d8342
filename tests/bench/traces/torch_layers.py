# SPDX-License-Identifier: MIT
"""The layers that PyTorch leaves to cuDNN and cuBLAS, which the simulated GPU has not: each takes and frees
what the real one does (outputs, workspaces, what is saved for the way back, gradients) and computes nothing.
All other operations are PyTorch's own."""
import torch

from pace import device

# PyTorch's defaults: one for good, and one for each product that has a bias to add.
CUBLAS_WORKSPACE, CUBLASLT_WORKSPACE = 8519680, 1 << 20
kept = []


def size_of(*tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def workspace(like, size):
    """Comes and goes."""
    if size:
        torch.empty(size, dtype=torch.uint8, device=like.device)


class Convolution(torch.autograd.Function):
    """Tensors in the order NCHW, kernels of tensor cores: these turn around all that they are given, which is
    the workspace. A convolution of single points is a plain product."""

    @staticmethod
    def forward(ctx, values, weight, stride, padding):
        batch, _, height, width = values.shape
        channels, depth, side, _ = weight.shape
        out = values.new_empty(batch, channels, (height + 2 * padding - side) // stride + 1,
                               (width + 2 * padding - side) // stride + 1)
        if side > 1:
            workspace(values, size_of(values, weight, out))
        ctx.save_for_backward(values, weight)
        ctx.flops = 2.0 * out.numel() * depth * side * side
        device.work(ctx.flops, size_of(values, weight, out))
        return out

    @staticmethod
    def backward(ctx, gradient):
        values, weight = ctx.saved_tensors
        of_values = None
        if ctx.needs_input_grad[0]:
            of_values = torch.empty_like(values)
            workspace(values, size_of(values, weight, gradient) if weight.shape[2] > 1 else 0)
            device.work(ctx.flops, size_of(values, weight, gradient))
        of_weight = torch.empty_like(weight)
        workspace(values, size_of(values, gradient) + 8 * size_of(weight))
        device.work(ctx.flops, size_of(values, weight, gradient))
        return of_values, of_weight, None, None


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, weight, bias):
        if not kept:
            kept.append(torch.empty(CUBLAS_WORKSPACE, dtype=torch.uint8, device=values.device))
        out = values.new_empty(*values.shape[:-1], weight.shape[0])
        workspace(values, CUBLASLT_WORKSPACE if bias is not None else 0)
        ctx.save_for_backward(values, weight, bias)
        ctx.flops = 2.0 * out.numel() * weight.shape[1]
        device.work(ctx.flops, size_of(values, weight, out))
        return out

    @staticmethod
    def backward(ctx, gradient):
        values, weight, bias = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_values = torch.empty_like(values) if ctx.needs_input_grad[0] else None
        device.work(ctx.flops, size_of(values, weight, gradient))
        of_weight = torch.empty_like(weight)
        device.work(ctx.flops, size_of(values, weight, gradient))
        return of_values, of_weight, None if bias is None else gradient.sum(tuple(range(gradient.dim() - 1)))


class Attention(torch.autograd.Function):
    """The fused one, which keeps no square of the length."""

    @staticmethod
    def forward(ctx, query, key, value):
        batch, heads, length, width = query.shape
        out = query.new_empty(batch, length, heads, width).transpose(1, 2)
        of_rows = torch.empty(batch, heads, length, device=query.device)
        seed = torch.empty(2, dtype=torch.int64, device=query.device)
        ctx.save_for_backward(query, key, value, out, of_rows, seed)
        ctx.flops = 4.0 * batch * heads * length * key.shape[2] * width
        device.work(ctx.flops, size_of(query, key, value, out))
        return out

    @staticmethod
    def backward(ctx, gradient):
        query, key, value, _, of_rows, _ = ctx.saved_tensors
        gradients = [torch.empty_like(tensor) for tensor in (query, key, value)]
        rows = torch.empty_like(of_rows)
        sums = torch.empty(query.shape, dtype=torch.float32, device=query.device)
        del rows, sums
        device.work(2.5 * ctx.flops, 2 * size_of(query, key, value, gradient))
        return tuple(gradients)


class Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, indices, weight):
        ctx.save_for_backward(indices, weight)
        return weight.new_empty(*indices.shape, weight.shape[1])

    @staticmethod
    def backward(ctx, _gradient):
        indices, weight = ctx.saved_tensors
        of_weight = torch.empty_like(weight)
        order = [torch.empty_like(indices) for _ in range(3)]  # sorted, their places, counts
        workspace(weight, 32 * indices.numel() + 65536)
        del order
        device.work(0, size_of(weight))
        return None, of_weight


class Loss(torch.autograd.Function):
    """Of the next word, as cross_entropy takes it of numbers of 32 bits: PyTorch's own fills gigabytes with
    zeros, which on the simulated GPU is memory of the host."""

    @staticmethod
    def forward(ctx, scores, _words):
        parts = scores[:, :-1]
        ctx.shape, ctx.dtype = scores.shape, scores.dtype
        rows = torch.empty(parts.shape, dtype=scores.dtype, device=scores.device).view(-1, scores.shape[2])
        wide = torch.empty(rows.shape, dtype=torch.float32, device=rows.device)
        logs = torch.empty_like(wide)
        weight = torch.empty((), device=rows.device)
        ctx.save_for_backward(logs, weight)
        device.work(0, 3 * size_of(wide))
        return torch.empty((), device=rows.device)

    @staticmethod
    def backward(ctx, _gradient):
        logs, _ = ctx.saved_tensors
        of_logs = torch.empty_like(logs)
        of_wide = torch.empty_like(logs)
        del of_logs
        of_rows = torch.empty(logs.shape, dtype=ctx.dtype, device=logs.device)
        del of_wide
        of_scores = torch.empty(ctx.shape, dtype=ctx.dtype, device=logs.device)
        del of_rows
        device.work(0, 5 * size_of(logs))
        return of_scores, None


def best(scores, count):
    """topk without its sort."""
    workspace(scores, 16 * scores.numel())
    return scores.new_empty(scores.shape[0], count), scores.new_empty(scores.shape[0], count, dtype=torch.int64)


class Conv(torch.nn.Module):
    def __init__(self, depth, channels, side, stride=1):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(channels, depth, side, side))
        self.stride = stride

    def forward(self, values):
        return Convolution.apply(values, self.weight, self.stride, self.weight.shape[2] // 2)


class Linear(torch.nn.Module):
    def __init__(self, depth, channels, bias=True):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(channels, depth))
        self.bias = torch.nn.Parameter(torch.empty(channels)) if bias else None

    def forward(self, values):
        return Product.apply(values, self.weight, self.bias)


class Embedding(torch.nn.Module):
    def __init__(self, count, channels):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(count, channels))

    def forward(self, indices):
        return Lookup.apply(indices, self.weight)
