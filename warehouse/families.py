"""Families of operators: what an operator does to its tensors, for colours in drawings and for grouping in SQL.

In goes a target as records name it (`torch.nn.functional.linear`), out comes one of the families below. Only the last
part of the name counts, without the in-place underscore, so a function and its method form share a family.
"""

from __future__ import annotations

FAMILIES: dict[str, tuple[str, ...]] = {
    "matmul": tuple(
        "linear matmul mm bmm addmm baddbmm addbmm einsum bilinear tensordot dot mv outer __matmul__".split()
    ),
    "convolution": tuple(
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution deform_conv2d".split()
    ),
    "attention": tuple("scaled_dot_product_attention multi_head_attention_forward flex_attention".split()),
    "softmax": tuple("softmax log_softmax softmin gumbel_softmax".split()),
    "normalisation": tuple(
        "layer_norm batch_norm group_norm instance_norm rms_norm local_response_norm normalize "
        "native_layer_norm native_batch_norm native_group_norm weight_norm".split()
    ),
    "pointwise": tuple(
        "add sub rsub mul div truediv floordiv floor_divide true_divide mod remainder fmod neg pos pow square sqrt rsqrt "
        "reciprocal exp exp2 expm1 log log2 log10 log1p logit abs sign sgn sin cos tan asin acos atan atan2 sinh cosh "
        "tanh erf erfc erfinv sigmoid relu relu6 leaky_relu prelu rrelu elu celu selu gelu silu mish softplus softsign "
        "hardtanh hardsigmoid hardswish hardshrink softshrink threshold logsigmoid glu tanhshrink clamp clamp_min "
        "clamp_max clip where masked_fill lerp addcmul addcdiv minimum maximum fmin fmax eq ne lt le gt ge isnan isinf "
        "isfinite nan_to_num logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not "
        "bitwise_xor __and__ __or__ and_ or_ xor invert not_ floor ceil round trunc frac dropout dropout1d dropout2d "
        "feature_dropout alpha_dropout drop_path iadd isub imul itruediv".split()
    ),
    "reduction": tuple(
        "sum mean std var std_mean var_mean max min amax amin aminmax prod all any argmax argmin norm vector_norm "
        "logsumexp cumsum cumprod logcumsumexp count_nonzero median nanmean nansum".split()
    ),
    "pooling": tuple(
        "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
        "adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d lp_pool2d interpolate upsample grid_sample "
        "roi_align max_pool2d_with_indices affine_grid".split()
    ),
    "layout": tuple(
        "view reshape flatten unflatten permute transpose t T mT H swapaxes swapdims movedim moveaxis squeeze unsqueeze "
        "expand expand_as repeat repeat_interleave tile contiguous chunk split split_with_sizes tensor_split unbind "
        "narrow select slice cat concat concatenate stack hstack vstack dstack pad roll flip rot90 unfold fold "
        "pixel_shuffle pixel_unshuffle channel_shuffle as_strided view_as reshape_as diagonal tril triu meshgrid "
        "getitem setitem broadcast_to broadcast_tensors real imag view_as_real view_as_complex".split()
    ),
    "indexing": tuple(
        "embedding embedding_bag gather scatter scatter_add scatter_reduce index_select index_add index_copy index_put "
        "index_fill take take_along_dim masked_select masked_scatter nonzero one_hot bincount topk sort argsort "
        "searchsorted bucketize unique unique_consecutive nms".split()
    ),
    "creation": tuple(
        "zeros ones full empty arange linspace eye tensor as_tensor scalar_tensor zeros_like ones_like full_like "
        "empty_like new_zeros new_ones new_full new_empty new_tensor rand randn randint rand_like randn_like bernoulli "
        "normal uniform randperm multinomial".split()
    ),
    "conversion": tuple(
        "to type float half bfloat16 double int long short bool type_as clone detach copy item cpu cuda".split()
    ),
    "metadata": tuple(
        "size shape dim ndim numel dtype device stride is_floating_point sym_int sym_max sym_min".split()
    ),
}
OTHER = "other"

_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names}


def family_of(target: str) -> str:
    """The family of an operator, `other` when none claims it."""
    name = target.rsplit(".", 1)[-1]
    return _FAMILY_OF.get(name) or _FAMILY_OF.get(name.removesuffix("_"), OTHER)
