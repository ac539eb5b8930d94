"""The operators that are run: the same numbers for the same row always, in work that the file bounds.

What is not here is refused: operators are let in one by one, after a look at what their work depends on.
"""

_PLAIN = """
Abs Add And ArgMax ArgMin BatchNormalization Cast Ceil Clip Concat Constant Div Elu Equal Erf Exp Flatten
Floor Gather Gelu Gemm Greater GreaterOrEqual HardSigmoid Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log
LogSoftmax MatMul Max Mean Min Mod Mul Neg Not Or PRelu Pow Reciprocal ReduceL1 ReduceL2 ReduceLogSumExp
ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Round Selu Sigmoid Sign Slice
Softmax Softplus Softsign Split Sqrt Squeeze Sub Sum Tanh ThresholdedRelu Transpose Unsqueeze Where Xor
"""
PLAIN = frozenset(_PLAIN.split())
"""Of ai.onnx."""

_REASONS = {
    "draws at random: the same row must always have the same score": (
        "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli Dropout"
    ),
    "is control flow: a model must be one plain graph": "If Loop Scan SequenceMap",
    "scales by what it sees (dynamic quantization): convert the model with floats": (
        "DynamicQuantizeLinear QuantizeLinear DequantizeLinear QLinearMatMul MatMulInteger ConvInteger"
    ),
    "makes a map or a list: convert a classifier with options={'zipmap': False}": (
        "ZipMap CastMap DictVectorizer SequenceAt SequenceConstruct SequenceEmpty SequenceErase "
        "SequenceInsert SequenceLength SplitToSequence ConcatFromSequence Optional OptionalGetElement"
    ),
    "makes as many numbers as its values say: use fixed shapes": (
        "NonZero Range Tile Expand ConstantOfShape Unique Compress Pad Resize Upsample OneHot "
        "NonMaxSuppression EyeLike CenterCropPad Shape Size"
    ),
    "works on text in ways whose work is not bounded: use OneHotEncoder or OrdinalEncoder": (
        "RegexFullMatch StringSplit StringNormalizer StringConcat TfIdfVectorizer"
    ),
    "is not run, as the sizes of its tables are not checked: use a linear model, trees or a network": (
        "SVMClassifier SVMRegressor TreeEnsemble CategoryMapper"
    ),
}
_WHY = {name: reason for reason, names in _REASONS.items() for name in names.split()}


def why_not(operator: str) -> str:
    """Why an operator is not run, and what to do.

    Example:
        >>> why_not("Loop")
        'Loop is control flow: a model must be one plain graph'
    """
    known = "".join(letter if letter.isprintable() else "?" for letter in operator[:100])
    other = "is not on the list of operators that are run: convert the model without it"
    return f"{known} {_WHY.get(operator, other)}"
