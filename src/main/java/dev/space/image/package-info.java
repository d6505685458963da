/// Template images from recipes; the guest's kernel and initramfs.
@NullMarked
package dev.space.image;

import org.jspecify.annotations.NullMarked;
