"""Images with a convolutional network; GroupNorm, because BatchNorm's running statistics cannot be certified."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import pactrain

X, y = load_digits(return_X_y=True)
images = (X / 16).reshape(-1, 1, 8, 8)
X_train, X_test, y_train, y_test = train_test_split(images, y, test_size=0.5, random_state=0)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, padding=1),
    torch.nn.GroupNorm(4, 16),
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(16 * 16, 10),
)
result = pactrain.fit(model, (X_train, y_train), test=(X_test, y_test), budget="15 epochs")
print(f"test accuracy {result.metrics['test']['accuracy']:.3f}")

mean, std = result.posterior.predict(torch.tensor(X_test[:3]).float(), draws=50)
for chances, spread in zip(mean, std, strict=True):
    print(f"a {int(chances.argmax())} with probability {chances.max():.3f} ± {spread[chances.argmax()]:.3f}")
